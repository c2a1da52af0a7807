import { messageOf } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import { NOTICE_MARK } from "./asked.ts";
import type { AgentServer, Logger } from "./ports.ts";
import { firstRoot, isRoot, rootsOf } from "./root-sessions.ts";
import type { Message, MessageInfo, Part, Session } from "./server-model.ts";

/** How many of the most recently updated sessions are searched for the latest prompt of a user. */
const CANDIDATES = 8;
/** How many of a session's newest messages are searched. */
const RECENT_MESSAGES = 20;

/** What the active session needs to know of the folder's sessions. */
export interface SessionSource {
  sessions(): readonly Session[];
  session(sessionID: string): Session | undefined;
  readonly onDidChangeSession: Event<string>;
}

/**
 * The session in which a user wrote last. Windows show its tasks and attach new ones to it, unless their user picked
 * another one. The update time of a session is no criterion: every notice changes it.
 */
export class ActiveSession implements Disposable {
  private latest: string | undefined;
  /** How often a user was seen writing. */
  private written = 0;
  private last: string | undefined;
  /** The most recently changed user message of each session. */
  private readonly prompts = new Map<string, MessageInfo>();
  private creating: Promise<string> | undefined;
  private readonly changes: Emitter<string | undefined>;
  private readonly disposables: readonly Disposable[];
  readonly onDidChange: Event<string | undefined>;

  constructor(
    private readonly source: SessionSource,
    private readonly server: AgentServer,
    private readonly logger: Logger,
  ) {
    this.changes = new Emitter(logged(logger, "the active session"));
    this.onDidChange = this.changes.event;
    this.disposables = [
      source.onDidChangeSession((id) => {
        if (id === this.latest || id === this.last || this.last === undefined) this.announce();
      }),
      server.onEvent((event) => {
        if (event.type === "message-changed" && event.info.role === "user")
          this.prompts.set(event.info.sessionID, event.info);
        else if (event.type === "session-deleted") this.prompts.delete(event.sessionID);
        else if (event.type === "part-changed" && isWrittenByUser(event.part) && !this.isCopied(event.part))
          this.follow(event.part.sessionID);
      }),
    ];
  }

  /** Undefined if this folder has no session yet. */
  get id(): string | undefined {
    return this.last;
  }

  /** The active session, created if the folder has none. */
  async ensure(): Promise<string> {
    if (this.id !== undefined) return this.id;
    this.creating ??= this.server
      .createSession({ title: "Background tasks" })
      .then(({ id }) => {
        this.latest = id;
        this.announce();
        return id;
      })
      .finally(() => (this.creating = undefined));
    return this.creating;
  }

  /** Finds the session in which a user wrote last. Called after each connect. */
  async refresh(): Promise<void> {
    const { written } = this;
    const candidates = rootsOf(this.source.sessions()).slice(0, CANDIDATES);
    const recent = await Promise.all(
      candidates.map(async ({ id }) => ({ id, messages: await this.read(id, RECENT_MESSAGES) })),
    );
    let newest = { id: "", at: 0 };
    for (const { id, messages } of recent) newest = later(newest, { id, at: lastWritten(messages) });
    // Where an agent has worked for long, what its user wrote is older than the newest messages.
    for (const { id, messages } of recent) {
      const [oldest] = messages;
      const isInSight = messages.length < RECENT_MESSAGES || lastWritten(messages) > 0;
      if (oldest && !isInSight && oldest.info.created > newest.at)
        newest = later(newest, { id, at: lastWritten(await this.read(id)) });
    }
    // What a user has written meanwhile is newer.
    if (newest.at > 0 && this.written === written) this.latest = newest.id;
    this.announce();
  }

  dispose(): void {
    for (const subscription of this.disposables) subscription.dispose();
    this.changes.dispose();
  }

  private async read(sessionID: string, limit?: number): Promise<readonly Message[]> {
    try {
      return await this.server.messages(sessionID, limit);
    } catch (error) {
      this.logger.warn(`Couldn't read session ${sessionID}: ${messageOf(error)}`);
      return [];
    }
  }

  private follow(sessionID: string): void {
    if (!isRoot(this.source.session(sessionID))) return;
    this.written++;
    if (sessionID === this.latest) return;
    this.latest = sessionID;
    this.announce();
  }

  /** A message older than its session came from a copied conversation. */
  private isCopied({ sessionID, messageID }: Part): boolean {
    const prompt = this.prompts.get(sessionID);
    const session = this.source.session(sessionID);
    return !!session && prompt?.id === messageID && prompt.created < session.created;
  }

  private announce(): void {
    const id = firstRoot(
      [this.latest, this.last],
      (each) => this.source.session(each),
      () => this.source.sessions(),
    );
    if (id === this.last) return;
    this.last = id;
    this.changes.fire(id);
  }
}

/** When a user last wrote one of these messages, in milliseconds since 1970; 0 if none did. */
function lastWritten(messages: readonly Message[]): number {
  const written = messages.findLast(({ info, parts }) => info.role === "user" && parts.some(isWrittenByUser));
  return written?.info.created ?? 0;
}

function later<T extends { readonly at: number }>(one: T, other: T): T {
  return other.at > one.at ? other : one;
}

/** A model's own text has a start, and text that programs add to a conversation is marked or synthetic. */
function isWrittenByUser(part: Part): boolean {
  return (
    part.type === "text" &&
    part.start === undefined &&
    !part.synthetic &&
    part.metadata?.[NOTICE_MARK] === undefined
  );
}
