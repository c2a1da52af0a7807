import { Emitter } from "../../src/engine/event.ts";
import { freshID } from "../../src/engine/ids.ts";
import { ServerFailure, type AgentServer, type NewSession } from "../../src/engine/ports.ts";
import {
  ABORTED,
  type AgentError,
  type AgentInfo,
  type AssistantMessageInfo,
  type Message,
  type MessageInfo,
  type ModelInfo,
  type Part,
  type PendingRequest,
  type PermissionRequest,
  type PermissionRule,
  type Prompt,
  type PromptPart,
  type RequestAnswer,
  type ServerEvent,
  type Session,
  type SessionChanges,
  type SessionStatus,
  type ToolState,
} from "../../src/engine/server-model.ts";
import type { TaskRecord, TaskRecordDraft } from "../../src/engine/task.ts";
import { encodeRecord, readRecord, RECORD_KEY } from "../../src/opencode/record-codec.ts";

const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
const MODEL = { providerID: "memory", modelID: "m" };
const ABORT: AgentError = { name: ABORTED, message: "Aborted" };

/** How a turn ends. */
export type Ending =
  | { readonly type: "completed"; readonly text: string }
  | { readonly type: "failed"; readonly error: AgentError }
  | { readonly type: "aborted" }
  /** Aborted during a retry; no event reports it. */
  | { readonly type: "aborted-in-retry" }
  /** A permission was rejected without a message to the model. */
  | { readonly type: "refused" };

/** A received call. */
export interface JournalEntry {
  readonly call: keyof AgentServer;
  readonly sessionID?: string | undefined;
  readonly messageID?: string | undefined;
  /** The number of parts in a prompt. */
  readonly parts?: number | undefined;
}

export interface MemoryServerOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /**
   * Whether turns advance only on demand: a prompt is accepted, but its turn waits for {@link MemoryServer.begin}, and
   * each step after a tool call, an end or an abort waits for {@link MemoryServer.step}.
   */
  readonly stepwise?: boolean;
  /** Whether it behaves like OpenCode 2: it resumes interrupted turns by itself, and reports idle once. */
  readonly likeVersion2?: boolean;
  /** The suffix of its IDs, which distinguishes several servers. */
  readonly name?: string;
}

const ALL_ALLOWED: readonly PermissionRule[] = [{ permission: "*", pattern: "*", action: "allow" }];

/** The turn of a session. */
interface Turn {
  /** The message that the model is writing; undefined before the first one. */
  open: AssistantMessageInfo | undefined;
  /** While a tool call runs: the remaining steps of the call, and of the model's step that it ends. */
  tool: Iterator<void> | undefined;
  /** The remaining steps of the turn's end, once it has begun. */
  ending: Iterator<void> | undefined;
  /** The ID of the request that its tool waits for. */
  asks: string | undefined;
  /** Whether it was aborted while already ending, so that it doesn't continue. */
  isAborted: boolean;
  /** Whether a prompt came in while it was ending. */
  again: boolean;
}

/**
 * A server without network, process or model, for measurements without these and for what a real server can't be made
 * to do on demand. It stores what it is given. Turns proceed as the test says, with events in OpenCode's order.
 * Returned values are copies, as if they had been sent over a network.
 */
export class MemoryServer implements AgentServer {
  readonly journal: JournalEntry[] = [];
  private readonly sessionsByID = new Map<string, Session>();
  private readonly metadataOf = new Map<string, Readonly<Record<string, unknown>>>();
  /** In the order in which they were first stored. */
  private readonly messagesOf = new Map<string, Map<string, Message>>();
  private readonly statusOf = new Map<string, SessionStatus>();
  private readonly requests = new Map<string, PendingRequest>();
  private readonly turns = new Map<string, Turn>();
  private readonly now: () => number;
  private readonly name: string;
  private readonly stepwise: boolean;
  private readonly events = new Emitter<ServerEvent>((error) => {
    throw error;
  });
  private made = 0;
  readonly onEvent = this.events.event;
  readonly resumesTurns: boolean;

  constructor({
    now = Date.now,
    stepwise = false,
    likeVersion2 = false,
    name = "memory",
  }: MemoryServerOptions = {}) {
    this.resumesTurns = likeVersion2;
    this.now = now;
    this.stepwise = stepwise;
    this.name = name;
  }

  /** Sends an event to all listeners immediately. */
  emit(event: ServerEvent): void {
    this.events.fire(event);
  }

  async releaseDirectory(): Promise<void> {
    this.journal.push({ call: "releaseDirectory" });
  }

  async createSession({
    title,
    parentID,
    agent,
    model,
    permission = [],
    directory = "/work",
    task,
  }: NewSession): Promise<Session> {
    this.journal.push({ call: "createSession" });
    const id = this.id("ses");
    const now = this.now();
    const session: Session = {
      id,
      title,
      directory,
      parentID,
      agent,
      model,
      created: now,
      updated: now,
      cost: 0,
      tokens: NO_TOKENS,
      permission,
      task: { kind: "none" },
    };
    return this.put(session, task && { [RECORD_KEY]: storable(task) });
  }

  async session(sessionID: string): Promise<Session | undefined> {
    this.journal.push({ call: "session", sessionID });
    return structuredClone(this.sessionsByID.get(sessionID));
  }

  async restrict(sessionID: string, rules: readonly PermissionRule[]): Promise<Session> {
    this.journal.push({ call: "restrict", sessionID });
    const session = this.require(sessionID, `PATCH /session/${sessionID}`);
    return this.put({ ...session, permission: [...(session.permission ?? []), ...rules] }, undefined);
  }

  async sessions(): Promise<readonly Session[]> {
    this.journal.push({ call: "sessions" });
    return structuredClone([...this.sessionsByID.values()]);
  }

  async deleteSession(sessionID: string): Promise<void> {
    this.journal.push({ call: "deleteSession", sessionID });
    this.remove(sessionID);
  }

  async copySession(sourceID: string, session: NewSession): Promise<Session> {
    this.journal.push({ call: "copySession", sessionID: sourceID });
    this.require(sourceID, `POST /session/${sourceID}/fork`);
    const copy = await this.createSession(session);
    this.storeHistory(copy.id, this.stored(sourceID));
    return copy;
  }

  async canWriteHistory(): Promise<boolean> {
    return true;
  }

  async writeHistory(sessionID: string, messages: readonly Message[]): Promise<void> {
    this.journal.push({ call: "writeHistory", sessionID });
    this.require(sessionID, "POST /sync/replay");
    this.messagesOf.delete(sessionID);
    this.storeHistory(sessionID, messages);
  }

  async saveRecord(record: TaskRecord): Promise<Session | undefined> {
    this.journal.push({ call: "saveRecord", sessionID: record.id });
    const session = this.sessionsByID.get(record.id);
    if (!session) return undefined;
    if (session.task.kind === "unreadable")
      throw new ServerFailure(`PATCH /session/${record.id}`, "refused", session.task.reason, 400);
    const metadata = {
      ...this.metadataOf.get(record.id),
      [RECORD_KEY]: storable(record),
    };
    return this.put({ ...session, updated: this.now() }, metadata);
  }

  async messages(sessionID: string, limit?: number): Promise<readonly Message[]> {
    this.journal.push({ call: "messages", sessionID });
    this.require(sessionID, `GET /session/${sessionID}/message`);
    const messages = this.stored(sessionID);
    return structuredClone(limit === undefined ? messages : messages.slice(-limit));
  }

  /** Sessions on this server never change files. */
  async changes(sessionID: string): Promise<SessionChanges> {
    this.journal.push({ call: "changes", sessionID });
    this.require(sessionID, `GET /session/${sessionID}/message`);
    return { files: [], hasSnapshots: false };
  }

  async message(sessionID: string, messageID: string): Promise<Message | undefined> {
    this.journal.push({ call: "message", sessionID, messageID });
    return structuredClone(this.messagesOf.get(sessionID)?.get(messageID));
  }

  async prompt(sessionID: string, prompt: Prompt): Promise<void> {
    const { messageID, agent, model, parts, files = [], noReply = false } = prompt;
    this.journal.push({ call: "prompt", sessionID, messageID, parts: parts.length });
    this.require(sessionID, `POST /session/${sessionID}/prompt_async`);
    if (!(await this.agents()).some(({ name }) => name === agent)) {
      // The real server responds before it checks the agent, and doesn't store the message.
      const error = { name: "UnknownError", message: `Agent not found: "${agent}"` };
      this.emit({ type: "session-error", sessionID, error });
      return;
    }
    this.storeMessage({ role: "user", id: messageID, sessionID, created: this.now(), agent, model });
    for (const part of parts) this.storePart(this.promptPart(sessionID, messageID, part));
    for (const file of files)
      this.storePart({ ...file, id: this.id("prt"), sessionID, messageID, type: "file" });
    const turn = this.turns.get(sessionID);
    if (noReply || this.isAnswered(sessionID)) return;
    if (!turn) this.take(sessionID);
    // A turn that isn't idle yet picks up the prompt by itself.
    else if (turn.ending && !this.statusOf.has(sessionID)) turn.again = true;
  }

  async abort(sessionID: string): Promise<void> {
    this.journal.push({ call: "abort", sessionID });
    const turn = this.turns.get(sessionID);
    if (!turn || !this.statusOf.has(sessionID)) return;
    if (turn.ending) {
      turn.isAborted = true;
      return;
    }
    const isRetrying = this.statusOf.get(sessionID)?.type === "retry";
    this.end(sessionID, { type: isRetrying ? "aborted-in-retry" : "aborted" });
  }

  async isWorkingIn(): Promise<boolean> {
    return false;
  }

  async statuses(): Promise<ReadonlyMap<string, SessionStatus>> {
    this.journal.push({ call: "statuses" });
    return new Map(this.statusOf);
  }

  async agents(): Promise<readonly AgentInfo[]> {
    return [
      { name: "general", mode: "subagent", hidden: false, permission: ALL_ALLOWED },
      { name: "helper", mode: "all", hidden: false, permission: ALL_ALLOWED },
      { name: "build", mode: "primary", hidden: false, permission: ALL_ALLOWED },
    ];
  }

  async models(): Promise<readonly ModelInfo[]> {
    return [];
  }

  async pendingRequests(): Promise<readonly PendingRequest[]> {
    this.journal.push({ call: "pendingRequests" });
    return structuredClone([...this.requests.values()]);
  }

  async answer(request: PendingRequest, answer: RequestAnswer): Promise<void> {
    const { id, sessionID } = request;
    this.journal.push({ call: "answer", sessionID });
    if (!this.requests.has(id))
      throw new ServerFailure(`POST /${request.type}/${id}/reply`, "not-found", `Not found: ${id}`, 404);
    this.close(
      request,
      answer.type === "dismiss" || (answer.type === "permission" && answer.reply === "reject"),
    );
  }

  /** The sessions with a turn, and how far each turn is. */
  running(): ReadonlyMap<string, "taken" | "busy" | "asking" | "tool" | "ending"> {
    const stageOf = (id: string, { ending, tool, asks }: Turn) => {
      if (ending) return "ending";
      if (tool) return "tool";
      if (asks !== undefined) return "asking";
      return this.statusOf.has(id) ? "busy" : "taken";
    };
    return new Map([...this.turns].map(([id, turn]) => [id, stageOf(id, turn)]));
  }

  has(sessionID: string): boolean {
    return this.sessionsByID.has(sessionID);
  }

  known(): readonly Session[] {
    return [...this.sessionsByID.values()];
  }

  /** Answers the permission that the session's turn waits for. */
  reply(sessionID: string, reply: "once" | "reject"): void {
    const request = this.requests.get(this.turn(sessionID).asks ?? "");
    if (request) this.close(request, reply === "reject");
  }

  /** Adds a session as if it had existed before, with the metadata that others keep in it. */
  put(session: Session, metadata: Readonly<Record<string, unknown>> | undefined): Session {
    const known = metadata ?? this.metadataOf.get(session.id);
    if (known) this.metadataOf.set(session.id, known);
    const { id, parentID } = session;
    const complete = { ...session, task: readRecord({ id, parentID, ...(known && { metadata: known }) }) };
    this.sessionsByID.set(id, complete);
    this.emit({ type: "session-changed", session: structuredClone(complete) });
    return structuredClone(complete);
  }

  metadata(sessionID: string): Readonly<Record<string, unknown>> | undefined {
    return structuredClone(this.metadataOf.get(sessionID));
  }

  /** Applies an event without notifying anyone. */
  apply(event: ServerEvent): void {
    switch (event.type) {
      case "session-changed": {
        const { id, parentID } = event.session;
        const metadata = this.metadataOf.get(id);
        const task = readRecord({ id, parentID, ...(metadata && { metadata }) });
        this.sessionsByID.set(id, { ...event.session, task });
        return;
      }
      case "session-status":
        if (event.status.type === "idle") this.statusOf.delete(event.sessionID);
        else this.statusOf.set(event.sessionID, event.status);
        return;
      case "message-changed":
        this.keepMessage(event.info);
        return;
      case "part-changed":
        this.keepPart(event.part);
        return;
      case "request-asked":
        this.requests.set(event.request.id, event.request);
        return;
      case "request-closed":
        this.requests.delete(event.requestID);
        return;
      default:
    }
  }

  /** Starts the turn for a prompt. */
  begin(sessionID: string): void {
    const turn = this.turn(sessionID);
    if (turn.open) return;
    this.setStatus(sessionID, { type: "busy" });
    this.open(sessionID);
    this.setStatus(sessionID, { type: "busy" });
  }

  /** The model writes text. */
  write(sessionID: string, text: string): void {
    this.storePart(this.textPart(this.openMessage(sessionID), text));
  }

  /** The model calls a tool that succeeds, and is then asked again with the result. */
  useTool(sessionID: string, tool = "read"): void {
    this.openTool(sessionID, tool);
    this.closeTool(sessionID);
  }

  /** The model calls a tool that needs a permission. */
  ask(sessionID: string, permission = "bash"): PermissionRequest {
    this.openTool(sessionID, permission);
    // Its time matters, unlike that of other IDs.
    const id = freshID("evt", this.now(), () => 0, ++this.made).replace("evt", "per");
    const request: PermissionRequest = {
      type: "permission",
      id,
      sessionID,
      permission,
      patterns: ["*"],
      always: ["*"],
      metadata: {},
    };
    this.requests.set(id, request);
    this.turn(sessionID).asks = id;
    this.emit({ type: "request-asked", request });
    return request;
  }

  /** The model is unavailable, and will be retried. */
  retry(sessionID: string): void {
    this.openMessage(sessionID);
    const next = this.now() + 2_000;
    this.setStatus(sessionID, { type: "retry", attempt: 1, message: "Too many requests", next });
  }

  /** The user undoes a message and what came after it; without a message, restores what was undone. */
  undo(sessionID: string, messageID?: string): void {
    const session = this.known().find(({ id }) => id === sessionID);
    if (!session) throw new Error(`There is no session ${sessionID}.`);
    this.put({ ...session, undoneFrom: messageID === undefined ? undefined : { messageID } }, undefined);
  }

  /** The context is full: sends an error and compacts the conversation, after which the turn continues. */
  overflow(sessionID: string): void {
    const message = this.openMessage(sessionID);
    const error = { name: "ContextOverflowError", message: "The context is full" };
    this.emit({ type: "session-error", sessionID, error });
    this.complete(message, {});
    this.storeCompactionRequest(sessionID);
    this.setStatus(sessionID, { type: "busy" });
    this.open(sessionID, true);
  }

  /** Ends the running turn of the session with this answer, with events in OpenCode's order. */
  finish(sessionID: string, text: string): void {
    this.begin(sessionID);
    this.end(sessionID, { type: "completed", text });
    while (this.turns.get(sessionID)?.ending) this.step(sessionID);
  }

  /** Starts to end the running turn of the session. */
  end(sessionID: string, ending: Ending): void {
    const turn = this.turn(sessionID);
    if (turn.ending) throw new Error(`The turn in session ${sessionID} ends already.`);
    const script = this.play(sessionID, ending);
    turn.ending = script;
    turn.tool = undefined;
    turn.asks = undefined;
    do this.step(sessionID);
    while (!this.stepwise && this.turns.get(sessionID)?.ending === script);
  }

  /** Takes the next step of a tool call's or a turn's end. */
  step(sessionID: string): void {
    const turn = this.turn(sessionID);
    const { ending, tool } = turn;
    if (tool) return void tool.next();
    if (!ending?.next().done) return;
    // A message that arrived in the meantime made the turn continue.
    if (this.turns.get(sessionID) !== turn || turn.ending !== ending) return;
    this.turns.delete(sessionID);
    if (turn.again) this.take(sessionID);
  }

  /**
   * Simulates a crash and restart, which no event reports: running turns are gone, or begin again with a new message
   * when the server gets to them.
   */
  crash(): void {
    const interrupted = [...this.turns.keys()].filter((id) => !this.isAnswered(id));
    this.turns.clear();
    this.statusOf.clear();
    this.requests.clear();
    if (this.resumesTurns) for (const id of interrupted) this.take(id);
  }

  private *play(sessionID: string, ending: Ending): Generator<void, void> {
    switch (ending.type) {
      case "completed": {
        const message = this.openMessage(sessionID);
        if (ending.text !== "") this.storePart(this.textPart(message, ending.text, this.now()));
        this.storeMessage({ ...message, finish: "end" });
        yield;
        this.complete(message, { finish: "end" });
        yield;
        const isOver = !message.summary && this.isAnswered(sessionID);
        if (isOver || this.turn(sessionID).isAborted) return yield* this.becomeIdle(sessionID);
        return this.goOn(sessionID);
      }
      case "failed":
        return yield* this.endInError(sessionID, ending.error);
      case "aborted":
        return yield* this.endInError(sessionID, ABORT);
      case "aborted-in-retry":
        this.complete(this.openMessage(sessionID), {});
        yield;
        return yield* this.becomeIdle(sessionID);
      case "refused": {
        const message = this.openMessage(sessionID);
        const error = "The user rejected permission to use this tool.";
        this.endTool(message, { status: "error", error, refused: "by-user" });
        this.complete(message, { finish: "tools" });
        yield;
        return yield* this.becomeIdle(sessionID);
      }
    }
  }

  private *endInError(sessionID: string, error: AgentError): Generator<void, void> {
    const message = this.openMessage(sessionID);
    this.emit({ type: "session-error", sessionID, error });
    yield* this.becomeIdle(sessionID);
    yield;
    this.complete(message, { error });
    yield* this.becomeIdle(sessionID);
  }

  /** OpenCode 1 reports idle twice: as a status, and as a separate event. */
  private *becomeIdle(sessionID: string): Generator<void, void> {
    this.setStatus(sessionID, { type: "idle" });
    if (this.resumesTurns) return;
    yield;
    this.emit({ type: "session-status", sessionID, status: { type: "idle" } });
  }

  /** The model is asked again in the same turn. */
  private goOn(sessionID: string): void {
    const turn = this.turn(sessionID);
    turn.ending = undefined;
    turn.tool = undefined;
    turn.open = undefined;
    this.begin(sessionID);
  }

  private close({ id, sessionID }: PendingRequest, isRefused: boolean): void {
    this.requests.delete(id);
    this.emit({ type: "request-closed", sessionID, requestID: id });
    const turn = this.turns.get(sessionID);
    // An abort leaves the requests of its turn behind.
    if (turn?.asks !== id) return;
    turn.asks = undefined;
    if (isRefused) this.end(sessionID, { type: "refused" });
    else this.closeTool(sessionID);
  }

  private take(sessionID: string): void {
    this.turns.set(sessionID, {
      open: undefined,
      tool: undefined,
      ending: undefined,
      asks: undefined,
      isAborted: false,
      again: false,
    });
    if (!this.stepwise) this.begin(sessionID);
  }

  private turn(sessionID: string): Turn {
    const turn = this.turns.get(sessionID);
    if (!turn) throw new Error(`No turn runs in session ${sessionID}.`);
    return turn;
  }

  private open(sessionID: string, summary = false): AssistantMessageInfo {
    const prompt = this.newestPrompt(sessionID);
    if (!prompt) throw new Error(`Session ${sessionID} was asked nothing.`);
    const info: AssistantMessageInfo = {
      role: "assistant",
      id: this.id("msg"),
      sessionID,
      parentID: prompt.id,
      created: this.now(),
      agent: prompt.agent,
      model: prompt.model ?? MODEL,
      cost: 0,
      tokens: NO_TOKENS,
      summary,
    };
    this.turn(sessionID).open = info;
    this.storeMessage(info);
    return info;
  }

  private openMessage(sessionID: string): AssistantMessageInfo {
    return this.turn(sessionID).open ?? this.open(sessionID);
  }

  private complete(
    info: AssistantMessageInfo,
    { finish, error }: Pick<Partial<AssistantMessageInfo>, "finish" | "error">,
  ): void {
    this.storeMessage({ ...info, completed: this.now(), finish, error });
  }

  private storeCompactionRequest(sessionID: string): void {
    const prompt = this.newestPrompt(sessionID);
    const messageID = this.id("msg");
    this.storeMessage({
      role: "user",
      id: messageID,
      sessionID,
      created: this.now(),
      agent: prompt?.agent ?? "build",
    });
    this.storePart({ id: this.id("prt"), sessionID, messageID, type: "other", kind: "compaction" });
  }

  private openTool(sessionID: string, tool: string): void {
    const { id: messageID } = this.openMessage(sessionID);
    const call = {
      id: this.id("prt"),
      sessionID,
      messageID,
      type: "tool",
      tool,
      callID: this.id("call"),
    } as const;
    this.storePart({ ...call, state: { status: "pending", input: {} } });
    this.storePart({ ...call, state: { status: "running", input: {}, start: this.now() } });
  }

  private closeTool(sessionID: string): void {
    const turn = this.turn(sessionID);
    const script = this.playTool(sessionID);
    turn.tool = script;
    if (this.stepwise) return;
    while (!script.next().done);
  }

  /** The model's call is complete; the model is asked again some time after the step was completed. */
  private *playTool(sessionID: string): Generator<void, void> {
    const message = this.openMessage(sessionID);
    this.endTool(message, { status: "completed", output: "", title: "done" });
    this.storeMessage({ ...message, finish: "tools" });
    yield;
    this.complete(message, { finish: "tools" });
    yield;
    this.goOn(sessionID);
  }

  private endTool(
    { id, sessionID }: AssistantMessageInfo,
    outcome:
      | Pick<Extract<ToolState, { status: "completed" }>, "status" | "output" | "title">
      | Pick<Extract<ToolState, { status: "error" }>, "status" | "error" | "refused">,
  ): void {
    const call = this.messagesOf
      .get(sessionID)
      ?.get(id)
      ?.parts.findLast((part) => part.type === "tool");
    const now = this.now();
    if (call) this.storePart({ ...call, state: { ...outcome, input: {}, start: now, end: now } });
  }

  private textPart({ id, sessionID }: AssistantMessageInfo, text: string, end?: number): Part {
    const place = { sessionID, messageID: id };
    return { ...place, id: this.id("prt"), type: "text", text, synthetic: false, start: this.now(), end };
  }

  /** Stored histories cause no events. */
  private storeHistory(sessionID: string, messages: readonly Message[]): void {
    const newIDs = new Map<string, string>();
    for (const { info, parts } of structuredClone(messages)) {
      const id = this.id("msg");
      newIDs.set(info.id, id);
      this.keepMessage(
        info.role === "user"
          ? { ...info, id, sessionID }
          : { ...info, id, sessionID, parentID: newIDs.get(info.parentID) ?? info.parentID },
      );
      for (const part of parts) this.keepPart({ ...part, id: this.id("prt"), messageID: id, sessionID });
    }
  }

  private promptPart(sessionID: string, messageID: string, part: PromptPart): Part {
    const { id = this.id("prt"), text, synthetic = false, metadata } = part;
    return { id, sessionID, messageID, type: "text", text, synthetic, metadata };
  }

  /** The most recent prompt; sending a prompt again makes it the most recent. */
  private newestPrompt(sessionID: string) {
    return this.stored(sessionID)
      .flatMap(({ info }) => (info.role === "user" ? [info] : []))
      .reduce<Extract<MessageInfo, { role: "user" }> | undefined>(
        (newest, info) => (newest && newest.created > info.created ? newest : info),
        undefined,
      );
  }

  /** Whether the last answer is finished and belongs to the newest prompt. */
  private isAnswered(sessionID: string): boolean {
    const last = this.stored(sessionID)
      .flatMap(({ info }) => (info.role === "assistant" ? [info] : []))
      .at(-1);
    return (
      last?.finish !== undefined &&
      last.finish !== "tools" &&
      last.parentID === this.newestPrompt(sessionID)?.id
    );
  }

  private require(sessionID: string, call: string): Session {
    const session = this.sessionsByID.get(sessionID);
    if (!session) throw new ServerFailure(call, "not-found", `Session not found: ${sessionID}`, 404);
    return session;
  }

  private remove(sessionID: string): void {
    for (const { id, parentID } of [...this.sessionsByID.values()])
      if (parentID === sessionID) this.remove(id);
    this.messagesOf.delete(sessionID);
    this.metadataOf.delete(sessionID);
    if (this.sessionsByID.delete(sessionID)) this.emit({ type: "session-deleted", sessionID });
  }

  /** All messages of a session, in the order in which they were first stored. */
  stored(sessionID: string): readonly Message[] {
    return [...(this.messagesOf.get(sessionID)?.values() ?? [])];
  }

  private storeMessage(info: MessageInfo): void {
    this.keepMessage(info);
    this.emit({ type: "message-changed", info });
  }

  private keepMessage(info: MessageInfo): void {
    const messages = this.messagesOf.get(info.sessionID) ?? new Map<string, Message>();
    this.messagesOf.set(
      info.sessionID,
      messages.set(info.id, { info, parts: messages.get(info.id)?.parts ?? [] }),
    );
  }

  private storePart(part: Part): void {
    this.keepPart(part);
    this.emit({ type: "part-changed", part });
  }

  private keepPart(part: Part): void {
    const messages = this.messagesOf.get(part.sessionID);
    const message = messages?.get(part.messageID);
    if (!messages || !message) return;
    const at = message.parts.findIndex(({ id }) => id === part.id);
    const parts =
      at === -1
        ? [...message.parts, part].sort((a, b) => (a.id < b.id ? -1 : 1))
        : message.parts.with(at, part);
    messages.set(part.messageID, { ...message, parts });
  }

  private setStatus(sessionID: string, status: SessionStatus): void {
    if (status.type === "idle") this.statusOf.delete(sessionID);
    else this.statusOf.set(sessionID, status);
    this.emit({ type: "session-status", sessionID, status });
  }

  private id(prefix: string): string {
    return `${prefix}_${(++this.made).toString(16).padStart(12, "0")}${this.name}`;
  }
}

/** The record as it is stored. Fails as with the real server if it is too large. */
function storable(record: TaskRecord | TaskRecordDraft): unknown {
  try {
    return overTheWire(encodeRecord(record));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ServerFailure("PATCH /session", "refused", error.message);
  }
}

function overTheWire<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
