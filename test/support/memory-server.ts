import { Emitter } from "../../src/engine/event.ts";
import type { AgentServer, NewSession } from "../../src/engine/ports.ts";
import type {
  AgentInfo,
  AssistantMessageInfo,
  Message,
  MessageInfo,
  ModelInfo,
  Part,
  PendingRequest,
  Prompt,
  ServerEvent,
  Session,
  SessionStatus,
} from "../../src/engine/server-model.ts";
import type { TaskRecord } from "../../src/engine/task.ts";

const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/**
 * A server without a network, a process or a model, for what has to be measured without them: it keeps what it is
 * given, and a turn ends when {@link finish} says so. What it hands out is a copy, as if it had been read from a wire.
 */
export class MemoryServer implements AgentServer {
  private readonly sessionsByID = new Map<string, Session>();
  private readonly messagesOf = new Map<string, Message[]>();
  private readonly busy = new Map<string, SessionStatus>();
  private readonly events = new Emitter<ServerEvent>((error) => {
    throw error;
  });
  private made = 0;
  readonly onEvent = this.events.event;

  /** Tells everyone who listens, at once. */
  emit(event: ServerEvent): void {
    this.events.fire(event);
  }

  async createSession({ title, parentID, agent, model, task }: NewSession): Promise<Session> {
    const id = this.id("ses");
    const now = Date.now();
    const session: Session = {
      id,
      title,
      directory: "/work",
      parentID,
      agent,
      model,
      created: now,
      updated: now,
      cost: 0,
      tokens: NO_TOKENS,
      task: task ? { kind: "task", record: { ...task, id } } : { kind: "none" },
    };
    return this.put(session);
  }

  async session(sessionID: string): Promise<Session | undefined> {
    return structuredClone(this.sessionsByID.get(sessionID));
  }

  async sessions(): Promise<readonly Session[]> {
    return structuredClone([...this.sessionsByID.values()]);
  }

  async deleteSession(sessionID: string): Promise<void> {
    if (this.sessionsByID.delete(sessionID)) this.emit({ type: "session-deleted", sessionID });
  }

  async saveRecord(record: TaskRecord): Promise<Session | undefined> {
    const session = this.sessionsByID.get(record.id);
    return session && this.put({ ...session, updated: Date.now(), task: { kind: "task", record } });
  }

  async messages(sessionID: string, limit?: number): Promise<readonly Message[]> {
    const messages = this.messagesOf.get(sessionID) ?? [];
    return structuredClone(limit === undefined ? messages : messages.slice(-limit));
  }

  async message(sessionID: string, messageID: string): Promise<Message | undefined> {
    return structuredClone(this.messagesOf.get(sessionID)?.find(({ info }) => info.id === messageID));
  }

  async prompt(sessionID: string, { messageID, agent, model, parts, noReply }: Prompt): Promise<void> {
    const place = { sessionID, messageID };
    this.store(
      { role: "user", id: messageID, sessionID, created: Date.now(), agent, model },
      parts.map(({ id, text, synthetic = false, metadata }) => ({
        ...place,
        id: id ?? this.id("prt"),
        type: "text",
        text,
        synthetic,
        metadata,
      })),
    );
    if (!noReply) this.setStatus(sessionID, { type: "busy" });
  }

  async abort(sessionID: string): Promise<void> {
    this.setStatus(sessionID, { type: "idle" });
  }

  async statuses(): Promise<ReadonlyMap<string, SessionStatus>> {
    return new Map(this.busy);
  }

  async agents(): Promise<readonly AgentInfo[]> {
    return [{ name: "general", mode: "subagent", hidden: false }];
  }

  async models(): Promise<readonly ModelInfo[]> {
    return [];
  }

  async pendingRequests(): Promise<readonly PendingRequest[]> {
    return [];
  }

  async answer(): Promise<void> {}

  /** Ends the turn that runs in the session with this answer, and tells so in the order in which OpenCode does. */
  finish(sessionID: string, text: string): void {
    const prompt = this.messagesOf.get(sessionID)?.findLast(({ info }) => info.role === "user");
    if (!prompt) throw new Error(`Session ${sessionID} was asked nothing.`);
    const id = this.id("msg");
    const now = Date.now();
    const info: AssistantMessageInfo = {
      role: "assistant",
      id,
      sessionID,
      parentID: prompt.info.id,
      created: now,
      completed: now,
      agent: prompt.info.agent,
      model: { providerID: "memory", modelID: "m" },
      finish: "stop",
      cost: 0,
      tokens: NO_TOKENS,
      summary: false,
    };
    const place = { sessionID, messageID: id };
    const part: Part = {
      ...place,
      id: this.id("prt"),
      type: "text",
      text,
      synthetic: false,
      start: now,
      end: now,
    };
    this.store(info, [part]);
    this.setStatus(sessionID, { type: "idle" });
  }

  private put(session: Session): Session {
    this.sessionsByID.set(session.id, session);
    this.emit({ type: "session-changed", session: structuredClone(session) });
    return structuredClone(session);
  }

  private store(info: MessageInfo, parts: readonly Part[]): void {
    const messages = this.messagesOf.get(info.sessionID) ?? [];
    this.messagesOf.set(info.sessionID, messages);
    messages.push({ info, parts });
    this.emit({ type: "message-changed", info });
    for (const part of parts) this.emit({ type: "part-changed", part });
  }

  private setStatus(sessionID: string, status: SessionStatus): void {
    if (status.type === "idle") this.busy.delete(sessionID);
    else this.busy.set(sessionID, status);
    this.emit({ type: "session-status", sessionID, status });
  }

  private id(prefix: string): string {
    return `${prefix}_${(++this.made).toString(16).padStart(12, "0")}memory`;
  }
}
