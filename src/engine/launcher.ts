import { BatchIDs } from "./batch-ids.ts";
import type { Catalog } from "./catalog.ts";
import { messageOf, Refusal } from "./errors.ts";
import { freshID, type Random } from "./ids.ts";
import { ServerFailure, type AgentServer, type Clock, type Logger } from "./ports.ts";
import type { LaunchQueue } from "./queue.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { ModelRef, TaskRecord } from "./task.ts";

/** Longest description kept, and longest one made from a prompt, in characters. */
const DESCRIPTION_LENGTH = 200;
const MADE_DESCRIPTION_LENGTH = 80;
/** Longest batch ID, in characters. */
const BATCH_ID_LENGTH = 100;

export interface LaunchInput {
  readonly prompt: string;
  /** What the task is about, for people; by default the prompt's first line. */
  readonly description?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  readonly parentSessionID: string;
  /** The message that asked for the task; by default the parent's newest. */
  readonly parentMessageID?: string | undefined;
  readonly launchedBy: TaskRecord["launchedBy"];
  readonly batchID?: string | undefined;
}

export interface LauncherPorts {
  readonly server: AgentServer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: Random;
  readonly settings: () => {
    readonly defaultAgent?: string | undefined;
    readonly defaultModel?: ModelRef | undefined;
  };
}

/** Makes tasks: checks what is wanted, creates the session with its record, and hands the prompt over. */
export class Launcher {
  private readonly batches: BatchIDs;

  constructor(
    private readonly ports: LauncherPorts,
    private readonly registry: TaskRegistry,
    private readonly catalog: Catalog,
    private readonly queue: LaunchQueue,
    /** Called when a launch took or gave back its slot. */
    private readonly onSettled: () => void,
  ) {
    this.batches = new BatchIDs(registry, ports.clock, ports.random);
  }

  /**
   * Hands a prompt to a new background agent, and returns as soon as the server took it. Where as many tasks work as
   * may, the new one waits in phase `queued`.
   */
  async launch(input: LaunchInput): Promise<Entry> {
    const { settings } = this.ports;
    requirePrompt(input.prompt);
    const { defaultAgent, defaultModel } = settings();
    const model = input.model ?? defaultModel;
    const { name: agent } = await this.catalog.agent(input.agent ?? defaultAgent);
    if (model) await this.catalog.checkModel(model);
    const parentMessageID = input.parentMessageID ?? (await this.newestMessageID(input.parentSessionID));

    if ((input.batchID?.length ?? 0) > BATCH_ID_LENGTH)
      throw new Refusal("invalid-argument", `The batch ID is longer than ${BATCH_ID_LENGTH} characters.`);
    const batch = this.batches.enter(input.parentSessionID, input.batchID);
    const startsNow = this.queue.reserve();
    let entry: Entry;
    try {
      entry = await this.createTask(
        { ...input, agent, model, parentMessageID, batchID: batch.id },
        startsNow,
      );
    } finally {
      batch.leave();
      if (startsNow) this.queue.release();
      this.onSettled();
    }
    try {
      await this.handOver(entry, input.prompt, startsNow);
    } finally {
      this.onSettled();
    }
    return entry;
  }

  private async createTask(
    input: LaunchInput & { readonly agent: string; readonly batchID: string },
    startsNow: boolean,
  ): Promise<Entry> {
    const { server, clock, random } = this.ports;
    const { agent, model, parentSessionID, parentMessageID, launchedBy, batchID } = input;
    const description = describe(input);
    const now = clock.now();
    const session = await server.createSession({
      title: description,
      parentID: parentSessionID,
      agent,
      model,
      task: {
        revision: 1,
        description,
        agent,
        model,
        parentSessionID,
        parentMessageID,
        launchedBy,
        batchID,
        isForked: false,
        resumeCount: 0,
        status: "running",
        queued: startsNow ? undefined : true,
        toolCalls: 0,
        promptMessageID: freshID("msg", now, random),
        createdAt: now,
        startedAt: now,
        notice: { state: "none" },
      },
    });
    const entry = this.registry.adopt(session);
    if (entry) return entry;
    throw new ServerFailure(
      "POST /session",
      "unexpected-answer",
      "The server did not keep the task's record.",
    );
  }

  /** Gives a new task its prompt. The task's queue is held until that is decided: nothing else may end it meanwhile. */
  private handOver(entry: Entry, text: string, startsNow: boolean): Promise<void> {
    const { server, logger } = this.ports;
    const { id, agent, model, promptMessageID: messageID } = entry.record;
    return entry.serial.run(async () => {
      try {
        await server.prompt(id, { messageID, agent, model, parts: [{ text }], noReply: !startsNow });
      } catch (error) {
        const arrived = await hasArrived(server, id, messageID);
        if (arrived) return;
        if (arrived === undefined) throw error;
        // A task that never got its prompt would only mislead.
        this.registry.forget(id);
        await Promise.all([server.abort(id), server.deleteSession(id)]).catch((cleanup: unknown) => {
          logger.warn(`Session ${id} could not be removed: ${messageOf(cleanup)}`);
        });
        throw error;
      }
    });
  }

  private async newestMessageID(sessionID: string): Promise<string | undefined> {
    const [newest] = await this.ports.server.messages(sessionID, 1);
    return newest?.info.id;
  }
}

export function requirePrompt(prompt: string): void {
  if (prompt.trim() === "")
    throw new Refusal("empty-prompt", "The prompt is empty; say what the task is to do.");
}

/**
 * Whether the server has a prompt whose call failed: an answer that was lost does not say that the prompt was.
 * Undefined where that cannot be known now; the turn watcher decides later.
 */
export async function hasArrived(
  server: AgentServer,
  sessionID: string,
  messageID: string,
): Promise<boolean | undefined> {
  try {
    return (await server.message(sessionID, messageID)) !== undefined;
  } catch {
    return undefined;
  }
}

function describe({ description, prompt }: LaunchInput): string {
  const given = description?.trim() ?? "";
  return given === ""
    ? firstLine(prompt.trim(), MADE_DESCRIPTION_LENGTH)
    : firstLine(given, DESCRIPTION_LENGTH);
}

function firstLine(text: string, limit: number): string {
  const line = text.split(/\r?\n/, 1)[0] ?? "";
  const characters = [...line];
  return characters.length > limit
    ? `${characters
        .slice(0, limit - 1)
        .join("")
        .trimEnd()}…`
    : line;
}
