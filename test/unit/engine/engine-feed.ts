import { inWords } from "../../../src/daemon/request-words.ts";
import type { TaskEngine } from "../../../src/engine/engine.ts";
import type { FolderChange, FolderSnapshot, MirroredSession } from "../../../src/engine/folder-changes.ts";
import type { Session } from "../../../src/engine/server-model.ts";

/** What an engine sends a window, as it comes out of a socket. */
export class EngineFeed {
  private pending: FolderChange[] = [];
  private toldTombstones: number;

  constructor(private readonly engine: TaskEngine) {
    const push = (change: FolderChange): void => void this.pending.push(change);
    engine.onDidChange(({ id, after }) => push({ type: "task", id, task: after }));
    engine.onDidChangeSession((id) => {
      const session = engine.session(id);
      push({ type: "session", id, session: session && mirrored(session) });
    });
    engine.onDidChangeSubagent(({ id, after }) => push({ type: "subagent", id, subagent: after }));
    engine.onDidChangeRequests(() => push({ type: "requests", requests: this.requests() }));
    engine.onDidWarn((task) => push({ type: "near-limit", task }));
    this.toldTombstones = this.tombstones().length;
  }

  snapshot(kind: "connected" | "disconnected" = "connected"): FolderSnapshot {
    this.pending = [];
    const { engine } = this;
    this.toldTombstones = this.tombstones().length;
    return throughSocket({
      connection: kind === "connected" ? { kind, url: "http://memory", version: "1", own: true } : { kind },
      sessions: engine.sessions().map(mirrored),
      tasks: engine.allTasks(),
      subagents: engine.subagents.all(),
      requests: this.requests(),
      tombstones: this.tombstones(),
    });
  }

  /** The changes since the last call. */
  changes(): readonly FolderChange[] {
    const tombstones = this.tombstones().slice(this.toldTombstones);
    this.toldTombstones += tombstones.length;
    const told = tombstones.map((tombstone) => ({ type: "tombstone" as const, tombstone }));
    return throughSocket([...told, ...this.pending.splice(0)]);
  }

  private requests() {
    return this.engine.requests.map((request) => inWords(request, "/work"));
  }

  private tombstones() {
    return this.engine["tombstones"];
  }
}

function mirrored({ task, ...session }: Session): MirroredSession {
  return { ...session, task: task.kind === "task" ? { kind: "task" } : task };
}

export function throughSocket<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
