import { Emitter, type Disposable, type Event } from "../../engine/event.ts";
import type { MirroredSession } from "../../engine/folder-changes.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import { firstRoot, rootsOf } from "../../engine/root-sessions.ts";

/**
 * The session whose tasks this window shows and to which it adds new ones: the one that the user picked in this window,
 * otherwise the folder's session that was last written to.
 */
export class WindowSession implements Disposable {
  private last: string | undefined;
  private readonly changes: Emitter<string | undefined>;
  private readonly subscriptions: readonly Disposable[];
  readonly onDidChange: Event<string | undefined>;

  constructor(
    private readonly known: ReadModel,
    /** Resolves to the session that a user last wrote to; creates one if the folder has none. */
    private readonly ensureSession: () => Promise<string>,
    logger: Logger,
    /** The stored choice of an earlier run, if any. */
    private picked?: string,
  ) {
    this.changes = new Emitter((error) => logger.error("A listener to the active session failed.", error));
    this.onDidChange = this.changes.event;
    this.subscriptions = [
      known.onDidChangeLatest(() => this.announce()),
      known.onDidChangeSession((id) => {
        if (id === this.picked || id === known.latestSessionID || id === this.last || this.last === undefined)
          this.announce();
      }),
    ];
  }

  /** Undefined if the folder has no session yet. */
  get session(): MirroredSession | undefined {
    return this.last === undefined ? undefined : this.known.session(this.last);
  }

  get id(): string | undefined {
    return this.last;
  }

  /** Whether the user picked the active session. */
  get isPicked(): boolean {
    return this.picked !== undefined && this.id === this.picked;
  }

  /** The sessions that can be active, most recently used first. */
  roots(): readonly MirroredSession[] {
    return rootsOf(this.known.sessions());
  }

  /** Picks a session; undefined follows the latest conversation again. */
  select(sessionID: string | undefined): void {
    this.picked = sessionID;
    this.announce();
  }

  /** The active session, created if the folder has none. */
  async ensure(): Promise<string> {
    return this.id ?? this.ensureSession();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changes.dispose();
  }

  private announce(): void {
    const id = firstRoot(
      [this.picked, this.known.latestSessionID, this.last],
      (each) => this.known.session(each),
      () => this.known.sessions(),
    );
    if (id === this.last) return;
    this.last = id;
    this.changes.fire(id);
  }
}
