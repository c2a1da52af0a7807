import { Refusal } from "../errors.ts";
import { freshID } from "../ids.ts";
import { ServerFailure, type EnginePorts } from "../ports.ts";
import { sentence } from "../sentence.ts";
import type { AttachedFile, Message, Session, Undone } from "../server-model.ts";
import type { ForkSettings } from "../settings.ts";
import type { ForkRange, TaskRecord } from "../task.ts";
import { answerText } from "../turn.ts";
import { cutHistory, requireLimits, type CutHistory, type CutLimits } from "./cut.ts";
import { inheritedHistory, unknownMessage, withoutUndone } from "./inherited-history.ts";
import { planFork, type ForkPlan } from "./plan.ts";
import { forkPreamble, type ForkFacts } from "./preamble.ts";
import { forkPreview, type ForkPreview } from "./preview.ts";
import { attachmentsOf } from "./tool-result.ts";
import { TRANSCRIPT_LEGEND, transcriptText } from "./transcript-text.ts";

/** How long the server may take to store a conversation as text that it has accepted, and how often to look. */
const STORING_MS = 15_000;
const LOOK_MS = 100;

/** Which conversation a task inherits, and how much of it. */
export interface ForkRequest extends ForkRange {
  readonly sourceSessionID: string;
}

/** A prompt of a conversation. `created` is in milliseconds since 1970. */
export interface ForkStart {
  readonly messageID: string;
  readonly text: string;
  readonly created: number;
}

/** A conversation prepared for a fork. */
export interface PreparedFork {
  readonly cut: CutHistory;
  readonly plan: ForkPlan;
  /** What the child reads before its prompt. */
  readonly preamble: string;
}

/** A conversation as it is stored. */
interface Source {
  readonly messages: readonly Message[];
  readonly undoneFrom: Undone | undefined;
}

/** How a fork begins: as a copy made by the server, or as an empty session that is filled later. */
export interface ForkOpening {
  readonly copies: boolean;
  /** Set if the conversation had to be prepared to decide about copying. */
  readonly prepared: PreparedFork | undefined;
}

interface ForkPorts extends Pick<EnginePorts, "server" | "tokens" | "clock" | "random"> {
  readonly settings: () => { readonly fork: ForkSettings };
}

/** Fills a new session with the conversation of another one, cut to fit the limits. */
export class ForkBuilder {
  private readonly server: EnginePorts["server"];

  constructor(
    private readonly ports: ForkPorts,
    private readonly sessions: { session(id: string): Session | undefined },
  ) {
    this.server = ports.server;
  }

  /**
   * Decides how the fork begins. Reads and cuts the conversation only if the server may have to copy it. Throws a
   * {@link Refusal} if the request is invalid.
   * @param prompt the prompt of the task, if an agent's call launches it
   * @param isInPlace whether the fork works in the same directory as its source, where the server puts its copies
   */
  async open(request: ForkRequest, prompt: string | undefined, isInPlace: boolean): Promise<ForkOpening> {
    this.check(request);
    await this.checkRange(request);
    if (!isInPlace || !(await this.mayCopy())) return { copies: false, prepared: undefined };
    const prepared = await this.prepare(request, prompt);
    return { copies: prepared.plan.kind === "copy", prepared };
  }

  /**
   * Reads and cuts the conversation. Throws a {@link Refusal} if the request is invalid.
   * @param prompt the prompt of the task, if an agent's call launches it
   */
  async prepare(request: ForkRequest, prompt?: string, signal?: AbortSignal): Promise<PreparedFork> {
    this.check(request);
    const { messages, undoneFrom } = await this.read(request);
    const limits = this.limits(request);
    const facts = this.facts(request);
    const cut = await cutHistory(
      inheritedHistory(messages, { ...request, undoneFrom }, prompt),
      limits,
      this.ports.tokens,
      signal,
      (cut) => `${forkPreamble(cut, facts)}\n\n${TRANSCRIPT_LEGEND}\n\n`,
    );
    const { strategy: wanted } = this.ports.settings().fork;
    // A copy keeps the token counts of its messages, which would make the server compact it before the first answer.
    const strategy = wanted === "auto" && lastTaken(messages) > limits.maxTokens ? "replay" : wanted;
    const hasReplay = await this.server.canWriteHistory();
    return { cut, plan: planFork(cut, { strategy, hasReplay }), preamble: forkPreamble(cut, facts) };
  }

  /** What the child would see, without creating it. */
  async preview(request: ForkRequest, signal?: AbortSignal): Promise<ForkPreview> {
    const { cut, plan } = await this.prepare(request, undefined, signal);
    return forkPreview(cut, plan, this.facts(request));
  }

  /** The prompts that a fork can start from, the oldest first. */
  async starts(sourceSessionID: string): Promise<readonly ForkStart[]> {
    const { messages, undoneFrom } = await this.read({ sourceSessionID });
    return withoutUndone(messages, undoneFrom).flatMap((message) => {
      const text = message.info.role === "user" ? answerText(message) : "";
      return text === "" ? [] : [{ messageID: message.info.id, text, created: message.info.created }];
    });
  }

  /** Writes a prepared conversation into the task's empty session: as text if the server refuses a replay. */
  async write(task: TaskRecord, { cut, plan }: PreparedFork): Promise<void> {
    if (cut.messages.length === 0) return;
    if (plan.kind === "replay") {
      try {
        return await this.server.writeHistory(task.id, this.replayed(task, plan));
      } catch (error) {
        if (!isRefused(error)) throw error;
        await this.server.writeHistory(task.id, []);
      }
    }
    const { clock, random } = this.ports;
    const messageID = freshID("msg", clock.now(), random);
    await this.server.prompt(task.id, {
      messageID,
      agent: task.agent,
      model: task.model,
      parts: [{ text: asText(cut.messages), synthetic: true }],
      noReply: true,
    });
    await this.storing(task.id, messageID);
  }

  /** Resolves when the message is stored. A server that ends before that loses it, though it has accepted it. */
  private async storing(sessionID: string, messageID: string): Promise<void> {
    const { clock } = this.ports;
    for (let waited = 0; waited < STORING_MS; waited += LOOK_MS) {
      if ((await this.server.message(sessionID, messageID))?.parts.length) return;
      await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
    }
    throw new ServerFailure(
      "prompt",
      "unexpected-answer",
      sentence("The server accepted the conversation but didn't store it."),
    );
  }

  private check(request: ForkRequest): void {
    requireLimits(this.limits(request));
    if (!this.sessions.session(request.sourceSessionID)) throw unknownSource();
  }

  /** Reads only the two messages if possible, as reading the whole conversation may take long. */
  private async checkRange(request: ForkRequest): Promise<void> {
    const { sourceSessionID, fromMessageID, upToMessageID } = request;
    const find = async (id: string | undefined): Promise<Message | undefined> => {
      if (id === undefined) return undefined;
      const message = await this.server.message(sourceSessionID, id);
      if (message?.info.sessionID !== sourceSessionID) throw unknownMessage(id);
      return message;
    };
    const [from, upTo] = await Promise.all([find(fromMessageID), find(upToMessageID)]);
    if (from && upTo && from.info.created > upTo.info.created) throw unknownMessage(from.info.id);
    const hasRange = from !== undefined || upTo !== undefined;
    if (!hasRange || !this.sessions.session(sourceSessionID)?.undoneFrom) return;
    const { messages, undoneFrom } = await this.read(request);
    inheritedHistory(messages, { ...request, undoneFrom });
  }

  /** Writing the messages is faster than the server's copy, even for short conversations. */
  private async mayCopy(): Promise<boolean> {
    const { strategy } = this.ports.settings().fork;
    return strategy === "fork" || (strategy === "auto" && !(await this.server.canWriteHistory()));
  }

  private async read({ sourceSessionID }: ForkRequest): Promise<Source> {
    try {
      const [messages, session] = await Promise.all([
        this.server.messages(sourceSessionID),
        this.server.session(sourceSessionID),
      ]);
      return { messages, undoneFrom: session?.undoneFrom };
    } catch (error) {
      throw error instanceof ServerFailure && error.reason === "not-found" ? unknownSource() : error;
    }
  }

  private limits({ maxToolResultChars, maxTokens }: ForkRequest): CutLimits {
    const settings = this.ports.settings().fork;
    return {
      maxToolResultChars: maxToolResultChars ?? settings.maxToolResultChars,
      maxTokens: maxTokens ?? settings.maxTokens,
    };
  }

  private facts({ sourceSessionID, carriesOn }: ForkRequest): ForkFacts {
    return { sourceTitle: this.sessions.session(sourceSessionID)?.title, carriesOn };
  }

  /** The messages to write. Those converted to text come first, as one message dated before the others. */
  private replayed(
    { id, agent, model }: TaskRecord,
    { asText: older, native }: Extract<ForkPlan, { kind: "replay" }>,
  ): readonly Message[] {
    if (older.length === 0) return native;
    const { clock, random } = this.ports;
    const created = (native[0]?.info.created ?? clock.now()) - 1;
    const messageID = freshID("msg", created, random);
    const place = () => ({ sessionID: id, messageID, id: freshID("prt", created, random) });
    const text: Message = {
      info: {
        role: "user",
        id: messageID,
        sessionID: id,
        created,
        agent,
        model: model ?? lastModel([...older, ...native]),
      },
      parts: [
        { ...place(), type: "text", text: asText(older), synthetic: true },
        ...filesIn(older).map((file) => ({ ...file, ...place(), type: "file" as const })),
      ],
    };
    return [text, ...native];
  }
}

function unknownSource(): Refusal {
  return new Refusal(
    "unknown-session",
    sentence("The conversation to fork doesn't exist in this folder. Select another one."),
  );
}

function asText(messages: readonly Message[]): string {
  return `${TRANSCRIPT_LEGEND}\n\n${transcriptText(messages)}`;
}

/** The contents that a text can only name: what users attached, and what tools returned. */
function filesIn(messages: readonly Message[]): readonly AttachedFile[] {
  return messages
    .flatMap(({ info, parts }) =>
      parts.flatMap((part): readonly AttachedFile[] => {
        if (part.type === "tool") return attachmentsOf(part.state);
        return part.type === "file" && info.role === "user" ? [part] : [];
      }),
    )
    .filter(({ url }) => url.startsWith("data:"))
    .map(({ url, mime, filename }) => ({ url, mime, filename }));
}

function lastModel(messages: readonly Message[]) {
  return messages.findLast(({ info }) => info.model !== undefined)?.info.model;
}

/** The tokens of the conversation as the server counts them: the usage of its last answer. */
function lastTaken(messages: readonly Message[]): number {
  const last = messages.findLast(({ info }) => info.role === "assistant" && info.completed !== undefined);
  if (last?.info.role !== "assistant") return 0;
  const { input, output, cacheRead, cacheWrite } = last.info.tokens;
  return input + output + cacheRead + cacheWrite;
}

function isRefused(error: unknown): boolean {
  return (
    error instanceof ServerFailure && (error.reason === "refused" || error.reason === "unexpected-answer")
  );
}
