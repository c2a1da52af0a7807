import { DisposableStore } from "../engine/disposable-store.ts";
import type { OpenRequest } from "../engine/engine.ts";
import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import type { ReadModel } from "../engine/read-model.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { Task } from "../engine/task.ts";
import type { NotifyUser } from "./settings.ts";

/** How often the window's presence is recorded, in milliseconds: a closing window may have no time for it. */
const KEEP_MS = 30_000;

/** What a window last saw of a folder. */
export interface Seen {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The IDs of the requests that were open. */
  readonly requests: readonly string[];
  /** The IDs of the active tasks. One may in fact have ended, and be heard of only later. */
  readonly active?: readonly string[];
}

/** What happened in a folder while no window had it open. */
export interface News {
  readonly completed: number;
  readonly failed: number;
  /** New requests that still wait for the user. */
  readonly waiting: number;
}

export interface WhileAwayOptions {
  readonly known: Pick<
    ReadModel,
    | "connection"
    | "active"
    | "allTasks"
    | "openRequests"
    | "onDidChange"
    | "onDidChangeRequests"
    | "onDidChangeConnection"
  >;
  /** Stored beyond the life of the window. */
  readonly state: { seen: Seen | undefined };
  readonly clock: Clock;
  readonly notifyUser: () => NotifyUser;
  readonly show: (news: News) => void;
}

/** Reports once, when a folder is opened again, what happened in the meantime; then records what the window sees. */
export class WhileAway implements Disposable {
  private isOver = false;
  private readonly summarised = new Set<string>();
  private keeping: Disposable | undefined;
  private readonly disposables: DisposableStore;

  constructor(private readonly options: WhileAwayOptions) {
    const { known } = options;
    this.disposables = new DisposableStore(
      known.onDidChangeConnection(() => this.look()),
      known.onDidChange(({ before, after }) => {
        if (before?.status === after?.status) this.keepSoon();
        else this.keep();
      }),
      known.onDidChangeRequests(() => this.keep()),
    );
  }

  /** Whether a request needs no notification of its own: the summary covers it, or may still do so. */
  covers(requestID: string): boolean {
    return !this.isOver || this.summarised.has(requestID);
  }

  dispose(): void {
    this.disposables.dispose();
    this.keep();
  }

  /** Runs once, when everything was read for the first time. */
  private look(): void {
    const { known, state, notifyUser, show } = this.options;
    if (this.isOver || known.connection.kind !== "connected") return;
    this.isOver = true;
    const { seen } = state;
    if (seen) {
      const requests = newRequests(seen, known.openRequests());
      const news = newsSince(seen, known.allTasks(), requests);
      if (isWanted(news, notifyUser())) {
        for (const { request } of requests) this.summarised.add(request.id);
        show(news);
      }
    }
    this.keep();
  }

  private keepSoon(): void {
    this.keeping ??= this.options.clock.after(KEEP_MS, () => this.keep());
  }

  private keep(): void {
    this.keeping?.dispose();
    this.keeping = undefined;
    const { known, state, clock } = this.options;
    // Data that is out of date doesn't count as seen.
    if (!this.isOver || known.connection.kind !== "connected") return;
    state.seen = {
      at: clock.now(),
      requests: known.openRequests().map(({ request }) => request.id),
      active: known.active().map(({ id }) => id),
    };
  }
}

function newRequests(seen: Seen, open: readonly OpenRequest[]): readonly OpenRequest[] {
  return open.filter(({ request }) => !seen.requests.includes(request.id));
}

function newsSince(seen: Seen, tasks: readonly Task[], requests: readonly OpenRequest[]): News {
  const ended = tasks.filter(
    ({ id, clearedAt, endedAt = 0 }) =>
      clearedAt === undefined && endedAt > (seen.active?.includes(id) ? 0 : seen.at),
  );
  return {
    completed: ended.filter(({ status }) => status === "completed").length,
    failed: ended.filter(({ status }) => status === "error").length,
    waiting: new Set(requests.map(({ child }) => child.id)).size,
  };
}

function isWanted({ completed, failed, waiting }: News, setting: NotifyUser): boolean {
  const needsUser = failed + waiting > 0;
  return (setting !== "never" && needsUser) || (setting === "always" && completed > 0);
}

/** `3 completed`, `1 failed`, `1 needs you`. */
export function newsWords({ completed, failed, waiting }: News): readonly Text[] {
  return [
    ...(completed > 0 ? [sentence("{0} completed", completed)] : []),
    ...(failed > 0 ? [sentence("{0} failed", failed)] : []),
    ...(waiting === 1 ? [sentence("1 needs you")] : []),
    ...(waiting > 1 ? [sentence("{0} need you", waiting)] : []),
  ];
}
