import { Emitter, type Disposable, type Event } from "../../engine/event.ts";
import type { MirroredSession } from "../../engine/folder-changes.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import { firstRoot, rootsOf } from "../../engine/root-sessions.ts";

/**
 * The session whose tasks this window shows and to which new ones are attached: the one the user picked here, else
 * the one of the folder in which a user last wrote.
 */
export class WindowSession implements Disposable {
  private last: string | undefined;
  private readonly changes: Emitter<string | undefined>;
  private readonly subscriptions: readonly Disposable[];
  readonly onDidChange: Event<string | undefined>;

  constructor(
    private readonly known: ReadModel,
    /** Resolves to the session in which a user last wrote, created where the folder has none. */
    private readonly ensureSession: () => Promise<string>,
    logger: Logger,
    /** The pick of an earlier time, if one was kept. */
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

  /** Undefined: this folder has no session yet. */
  get session(): MirroredSession | undefined {
    return this.last === undefined ? undefined : this.known.session(this.last);
  }

  get id(): string | undefined {
    return this.last;
  }

  /** Whether the user chose it. */
  get isPicked(): boolean {
    return this.picked !== undefined && this.id === this.picked;
  }

  /** The sessions that can be active, the one touched last first. */
  roots(): readonly MirroredSession[] {
    return rootsOf(this.known.sessions());
  }

  /** Fixes the choice; undefined follows the conversation again. */
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
