import type { ActiveSession } from "../engine/active-session.ts";
import type { TaskEngine } from "../engine/engine.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { Session } from "../engine/server-model.ts";
import type { Child } from "../engine/subagent.ts";
import { isTask } from "../engine/subagent.ts";
import type { Phase } from "../engine/task.ts";
import type { FolderChange, FolderSnapshot, MirroredRequest, MirroredSession } from "../rpc/contract.ts";
import type { Connecting } from "./connecting.ts";
import type { StateFile } from "./state-files.ts";
import { ChangeBatcher } from "./change-batcher.ts";
import { inWords } from "./request-words.ts";

export interface FolderFeedOptions {
  readonly directory: string;
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  readonly connecting: Connecting;
  readonly state: StateFile;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What windows are sent about a folder: a snapshot at first, then each change. */
export class FolderFeed implements Disposable {
  private readonly changes: ChangeBatcher;
  private readonly disposables: readonly Disposable[];
  readonly onDidChange: Event<readonly FolderChange[]>;

  constructor(private readonly options: FolderFeedOptions) {
    const { engine, session, connecting, state, clock, logger } = options;
    const changes = new ChangeBatcher(clock, logger);
    this.changes = changes;
    this.onDidChange = changes.onDidFlush;
    const noteRequests = (): void => {
      // Until then, the engine may not have read them, and windows keep what they know.
      if (connecting.state.kind !== "connected") return;
      changes.note("requests", () => ({ type: "requests", requests: this.requests() }), "now");
    };
    this.disposables = [
      changes,
      connecting.onDidChange(() => {
        noteRequests();
        changes.note("connection", () => ({ type: "connection", state: connecting.state }), "now");
      }),
      engine.onDidChangeSession((id) => {
        const read = (): FolderChange => {
          const session = engine.session(id);
          return { type: "session", id, session: session && mirrored(session) };
        };
        changes.note(`session ${id}`, read, "progress");
      }),
      engine.onDidChange((change) => {
        const { id } = change;
        changes.note(`task ${id}`, () => ({ type: "task", id, task: engine.get(id) }), urgencyOf(change));
      }),
      engine.onDidChangeSubagent((change) => {
        const { id } = change;
        const read = (): FolderChange => ({ type: "subagent", id, subagent: engine.subagents.get(id) });
        changes.note(`subagent ${id}`, read, urgencyOf(change));
      }),
      engine.onDidChangeRequests(noteRequests),
      engine.onDidWarn((task) => changes.noteEvent({ type: "near-limit", task })),
      engine.onDidRefuse((refused) => changes.noteEvent({ type: "refused", refused })),
      session.onDidChange(() =>
        changes.note("latest-session", () => ({ type: "latest-session", id: session.id }), "now"),
      ),
      state.onDidBury((tombstone) => changes.noteEvent({ type: "tombstone", tombstone })),
    ];
  }

  snapshot(): FolderSnapshot {
    const { engine, session, connecting, state } = this.options;
    return {
      connection: connecting.state,
      sessions: engine.sessions().map(mirrored),
      tasks: engine.allTasks(),
      subagents: engine.subagents.all(),
      requests: this.requests(),
      tombstones: state.load(),
      latestSessionID: session.id,
    };
  }

  flush(): void {
    this.changes.flush();
  }

  private requests(): readonly MirroredRequest[] {
    const { directory, engine } = this.options;
    return engine.requests.map((request) =>
      inWords(request, engine.worktreeWork.directoryOf(request.sessionID) ?? directory),
    );
  }

  dispose(): void {
    for (const subscription of this.disposables) subscription.dispose();
  }
}

function mirrored({ permission: _permission, task, ...session }: Session): MirroredSession {
  return { ...session, task: task.kind === "task" ? { kind: "task" } : task };
}

/** Between these, a model goes to and fro all the time while it works. */
const AT_WORK: readonly (Phase | undefined)[] = ["thinking", "streaming", "tool"];

/** Changes that users wait for are sent immediately: a start, an end, a request, or the outcome of a notice. */
export function urgencyOf({ before, after }: { before: Child | undefined; after: Child | undefined }) {
  const phases = [before, after].map((child) => child?.progress?.phase);
  const isOnlyProgress =
    before &&
    after &&
    before.status === after.status &&
    (phases[0] === phases[1] || phases.every((phase) => AT_WORK.includes(phase))) &&
    revisionOf(before) === revisionOf(after);
  return isOnlyProgress ? "progress" : "now";
}

function revisionOf(child: Child): number | undefined {
  return isTask(child) ? child.revision : undefined;
}
