import { watchForStop, type AgentPermissions } from "./agent-permissions.ts";
import { isStored, type PromptSender } from "./arrival.ts";
import { BatchIDs } from "./batch-ids.ts";
import type { BudgetUse } from "./budget-use.ts";
import type { Catalog } from "./catalog.ts";
import { invalidArgument, messageOf, Refusal } from "./errors.ts";
import type { ForkBuilder, ForkOpening, ForkRequest } from "./fork/builder.ts";
import type { ForkDelivery } from "./fork/delivery.ts";
import { withoutUndone } from "./fork/inherited-history.ts";
import { freshID } from "./ids.ts";
import { ServerFailure, type EnginePorts, type NewSession } from "./ports.ts";
import type { LaunchQueue } from "./queue.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Subagents } from "./subagents.ts";
import { sentPrompt } from "./running-turn.ts";
import { sentence } from "./sentence.ts";
import type { PermissionRule, PromptFile, Session } from "./server-model.ts";
import {
  isActive,
  isQueued,
  type ForkRange,
  type Isolation,
  type ModelRef,
  type TaskRecord,
} from "./task.ts";
import { describe } from "./task-names.ts";
import type { TaskWorktrees, Workplace } from "./task-worktrees.ts";
import type { TurnWatcher } from "./turns.ts";

/** The rule for sessions that may not launch tasks. */
const NO_AGENT_TOOLS: PermissionRule = { permission: "asyncagents_*", pattern: "*", action: "deny" };
/** The maximum length of a batch ID, in characters. */
const BATCH_ID_LENGTH = 100;

export interface LaunchInput {
  readonly prompt: string;
  readonly files?: readonly PromptFile[] | undefined;
  /** What the task is about, for users. Defaults to the prompt's first line. */
  readonly description?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  readonly parentSessionID: string;
  /** The message that asked for the task. Defaults to the parent's newest. */
  readonly parentMessageID?: string | undefined;
  readonly launchedBy: TaskRecord["launchedBy"];
  readonly batchID?: string | undefined;
  /** The agent that asks for the task. By default, that of the message. */
  readonly callingAgent?: string | undefined;
  /** The agent's call that asks for the task. A repeated call gets the same task. */
  readonly callID?: string | undefined;
  /** The agents that the user permitted the calling agent to launch. */
  readonly permitted?: readonly string[] | undefined;
  /** The conversation that the task inherits. */
  readonly fork?: ForkRequest | undefined;
  /** The failed or cancelled task that it retries or continues. */
  readonly insteadOf?: string | undefined;
  /**
   * Where the task works. By default, where its parent does if that is a worktree; otherwise as the setting says. A
   * fork of an isolated task is isolated too.
   */
  readonly isolation?: Isolation | undefined;
}

/** What is determined about a launch before its task exists. */
interface Settled {
  readonly agent: string;
  readonly model: ModelRef | undefined;
  readonly parentMessageID: string | undefined;
  readonly batchID: string;
  /** Whether there is a free slot, so that the task need not be queued. */
  readonly startsNow: boolean;
  /** The permission rules of the task's session. */
  readonly permission: readonly PermissionRule[];
  readonly opening: ForkOpening | undefined;
  readonly place: Workplace;
  /** Throws a refusal if the task that launches it was stopped since. */
  readonly requireGoingOn: () => void;
}

interface LauncherParts extends Pick<EnginePorts, "server" | "clock" | "logger" | "random" | "settings"> {
  readonly registry: TaskRegistry;
  readonly subagents: Subagents;
  readonly catalog: Catalog;
  readonly permissions: AgentPermissions;
  readonly queue: LaunchQueue;
  readonly forks: ForkBuilder;
  readonly prompts: PromptSender;
  readonly forkDelivery: ForkDelivery;
  readonly budget: BudgetUse;
  readonly turns: TurnWatcher;
  readonly worktrees: TaskWorktrees;
}

/** Launches tasks: checks the input, creates the session with its record, and sends the prompt. */
export class Launcher {
  private readonly registry: TaskRegistry;
  private readonly batches: BatchIDs;
  /** Launches in progress that a call asked for, by parent and call. Their tasks may not be in the registry yet. */
  private readonly launching = new Map<string, Promise<Entry>>();

  constructor(private readonly parts: LauncherParts) {
    const { registry, clock, random } = parts;
    this.registry = registry;
    this.batches = new BatchIDs(registry, clock, random);
  }

  /**
   * Launches a task, and resolves as soon as the server has accepted the prompt. If all slots are taken, the task waits
   * in phase `queued`.
   */
  async launch(input: LaunchInput): Promise<Entry> {
    requirePrompt(input.prompt);
    const { callID, parentSessionID } = input;
    if (callID === undefined) return this.launchNew(input);
    const key = `${parentSessionID}/${callID}`;
    const launching = this.launching.get(key);
    if (launching) return launching;
    const known = this.registry.calledBy(callID, parentSessionID);
    const launch = known ? this.deliverAgain(known, input) : this.launchNew(input);
    this.launching.set(key, launch);
    try {
      return await launch;
    } finally {
      this.launching.delete(key);
    }
  }

  private async launchNew(input: LaunchInput): Promise<Entry> {
    const { settings, catalog, forks, budget, queue, worktrees } = this.parts;
    const { defaultAgent, defaultModel, maxDepth } = settings();
    const isAgent = input.launchedBy === "agent" && input.insteadOf === undefined;
    const requireGoingOn = watchForStop(this.parts, input.parentSessionID, isAgent);
    const depth = this.registry.above(input.parentSessionID).size;
    if (isAgent && depth >= maxDepth)
      throw new Refusal(
        "too-deep",
        sentence(
          "Agents at this depth may not launch tasks (asyncagents.maxDepth is {0}); do the work yourself.",
          maxDepth,
        ),
      );
    if ((input.batchID?.length ?? 0) > BATCH_ID_LENGTH)
      throw invalidArgument(sentence("The batch ID is longer than {0} characters.", BATCH_ID_LENGTH));
    const model = input.model ?? defaultModel;
    const { agent, limitsAt } = await this.chooseAgent(input, defaultAgent);
    if (model) await catalog.checkModel(model);
    const place = await worktrees.placeFor(input);
    const limits = limitsAt(place);
    const inCall = input.launchedBy === "agent" ? input.prompt : undefined;
    const opening = input.fork && (await forks.open(input.fork, inCall, place.isInPlace));
    const parentMessageID = input.parentMessageID ?? (await this.newestMessageID(input.parentSessionID));
    const launched = { ...input, fork: endingAt(parentMessageID, input) };

    const batch = this.batches.enter(input.parentSessionID, input.batchID, input.launchedBy);
    try {
      budget.requireRoom(input.parentSessionID, batch.id);
    } catch (error) {
      batch.leave();
      throw error;
    }
    // What has to be set up first waits in the queue.
    const startsNow = !place.setsUp && queue.reserve();
    const permission = depth + 1 < maxDepth ? limits : [...limits, NO_AGENT_TOOLS];
    const settled = {
      agent,
      model,
      parentMessageID,
      batchID: batch.id,
      startsNow,
      permission,
      opening,
      place,
      requireGoingOn,
    };
    let entry: Entry;
    try {
      entry = await this.createTask(launched, settled);
    } finally {
      batch.leave();
      if (startsNow) queue.release();
      this.followUp();
    }
    await this.deliver(entry, launched, startsNow, opening);
    return entry;
  }

  /** The agent of a new task, and the rules that limit it to what the launching agent is allowed. */
  private async chooseAgent(
    input: LaunchInput,
    defaultAgent: string | undefined,
  ): Promise<{ readonly agent: string; readonly limitsAt: (place: Workplace) => readonly PermissionRule[] }> {
    const { catalog, permissions } = this.parts;
    const { parentSessionID, parentMessageID, callingAgent, launchedBy, permitted } = input;
    if (launchedBy === "person") {
      const { name } = await catalog.agent(input.agent ?? defaultAgent, launchedBy);
      return { agent: name, limitsAt: () => [] };
    }
    const call = {
      sessionID: parentSessionID,
      messageID: parentMessageID,
      agent: callingAgent,
      permitted,
    };
    const caller = await permissions.callingAgent(call);
    const { name } = await catalog.agent(input.agent ?? (await catalog.forTasks(defaultAgent)), launchedBy);
    caller.requireMayLaunch(name);
    const limitsAt = ({ isIsolated, worktree }: Workplace): readonly PermissionRule[] =>
      isIsolated || worktree ? caller.limitsElsewhere(name) : caller.limits(name);
    return { agent: name, limitsAt };
  }

  private async createTask(input: LaunchInput, settled: Settled): Promise<Entry> {
    const { server, clock, random, worktrees } = this.parts;
    const { agent, model, parentMessageID, batchID, startsNow, permission, opening, place } = settled;
    const { parentSessionID, launchedBy, callID, fork, insteadOf } = input;
    const description = describe(input);
    const worktree = await worktrees.make(place, description);
    const now = clock.now();
    const promptMessageID = freshID("msg", now, random);
    const wanted: NewSession = {
      title: description,
      parentID: parentSessionID,
      agent,
      model,
      permission,
      directory: (worktree ?? place.worktree)?.directory,
      task: {
        revision: 1,
        description,
        agent,
        model,
        parentSessionID,
        parentMessageID,
        launchedBy,
        batchID,
        isForked: fork !== undefined,
        forkedFrom: fork?.sourceSessionID,
        forkOptions: forkOptions(fork),
        insteadOf,
        worktree,
        resumeCount: 0,
        status: "running",
        queued: startsNow ? undefined : true,
        toolCalls: 0,
        callID,
        promptMessageID,
        createdAt: now,
        startedAt: now,
        notice: { state: "none" },
      },
    };
    const create = (): Promise<Session> =>
      fork && opening?.copies
        ? server.copySession(fork.sourceSessionID, wanted)
        : server.createSession(wanted);
    const session = await this.created(create, promptMessageID).catch(async (error: unknown) => {
      if (worktree) await worktrees.removeUnused(worktree);
      throw error;
    });
    const entry = this.registry.applySession(session);
    try {
      // From here on, the task is stopped with its parent.
      if (launchedBy === "agent") settled.requireGoingOn();
    } catch (error) {
      this.registry.discard(promptMessageID);
      if (worktree) await worktrees.removeUnused(worktree);
      throw error;
    }
    if (worktree) await worktrees.claim(worktree);
    if (entry) return entry;
    throw new ServerFailure(
      "createSession",
      "unexpected-answer",
      sentence("The server didn't save the task's record."),
    );
  }

  /** Removes the session of a failed launch. If that fails, the session is found again at the next connect. */
  async remove(sessionID: string): Promise<void> {
    const { server, logger } = this.parts;
    try {
      await server.abort(sessionID);
      await server.deleteSession(sessionID);
    } catch (error) {
      logger.warn(`Couldn't remove session ${sessionID}: ${messageOf(error)}`);
    }
  }

  /**
   * Creates the session of a task. If that fails, checks whether only the response was lost. If not, the session is
   * discarded should it appear later.
   */
  private async created(create: () => Promise<Session>, promptMessageID: string): Promise<Session> {
    try {
      return await create();
    } catch (error) {
      const sessions = await this.parts.server.sessions().catch(() => []);
      const created = sessions.find(
        ({ task }) => task.kind === "task" && task.record.promptMessageID === promptMessageID,
      );
      if (created) return created;
      this.registry.discard(promptMessageID);
      throw error;
    }
  }

  /** Repeats a call whose answer was lost: the task exists, but its prompt may not have arrived. */
  private async deliverAgain(entry: Entry, input: LaunchInput): Promise<Entry> {
    // A prompt sent by this process is repeated by the turn watcher.
    if (sentPrompt(entry)) return entry;
    const isThere = await isStored(this.parts.server, entry.record);
    if (isThere !== false || !isActive(entry.record)) return entry;
    const fork = input.fork && { ...input.fork, ...entry.record.forkOptions };
    await this.deliver(entry, { ...input, fork }, !isQueued(entry.record), undefined);
    return entry;
  }

  /** Sends a new task its prompt. A fork first gets its conversation, which the launch does not wait for. */
  private async deliver(
    entry: Entry,
    { prompt, files, fork }: LaunchInput,
    startsNow: boolean,
    opening: ForkOpening | undefined,
  ): Promise<void> {
    const delivery = fork
      ? this.parts.forkDelivery.run(entry, { request: fork, opening, prompt, files, startsNow })
      : this.deliverPrompt(entry, prompt, files, startsNow);
    const settled = delivery.finally(() => this.followUp());
    if (!fork) await settled;
  }

  /** Holds the task's queue until the server has accepted the prompt, so that nothing else ends the task meanwhile. */
  private deliverPrompt(
    entry: Entry,
    text: string,
    files: LaunchInput["files"],
    startsNow: boolean,
  ): Promise<void> {
    const { promptMessageID } = entry.record;
    return entry.serial.run(async () => {
      try {
        await this.parts.prompts.send(entry, { text, files, noReply: !startsNow });
      } catch (error) {
        // A task without its prompt would only be misleading.
        this.registry.discard(promptMessageID);
        if (entry.record.worktree) await this.parts.worktrees.removeUnused(entry.record.worktree);
        throw error;
      }
    });
  }

  /** Called after a launch took a slot or gave it back. */
  private followUp(): void {
    this.parts.turns.watch();
    this.parts.queue.pump();
  }

  private async newestMessageID(sessionID: string): Promise<string | undefined> {
    const undoneFrom = this.registry.session(sessionID)?.undoneFrom;
    const messages = await this.parts.server.messages(sessionID, undoneFrom ? undefined : 1);
    return withoutUndone(messages, undoneFrom).at(-1)?.info.id;
  }
}

export function requirePrompt(prompt: string): void {
  if (prompt.trim() === "")
    throw new Refusal("empty-prompt", sentence("The prompt is empty. Enter what the task should do."));
}

/** A fork of its parent ends with the message that asked for it, so that later attempts inherit the same. */
function endingAt(
  parentMessageID: string | undefined,
  { fork, parentSessionID }: LaunchInput,
): ForkRequest | undefined {
  return fork?.sourceSessionID === parentSessionID
    ? { ...fork, upToMessageID: fork.upToMessageID ?? parentMessageID }
    : fork;
}

/** Undefined if only the source was given. */
function forkOptions(fork: ForkRequest | undefined): ForkRange | undefined {
  if (!fork) return undefined;
  const { fromMessageID, upToMessageID, maxToolResultChars, maxTokens, carriesOn } = fork;
  const options = { fromMessageID, upToMessageID, maxToolResultChars, maxTokens, carriesOn };
  return Object.values(options).some((option) => option !== undefined) ? options : undefined;
}
