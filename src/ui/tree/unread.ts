import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import { type Child, isRunning, isTask, isCleared } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folders } from "../folders/folders.ts";
import { endOf } from "./family.ts";

const READ = "asyncagents.read";
/** How many results that were read are stored one by one; older ones count as read. */
const STORED = 500;

/** Which results the user has read. Times are in milliseconds since 1970. */
interface ReadResults {
  /** Results up to this time count as read. */
  readonly until: number;
  /** Of later results that were read, the time of each, by the ID of its task. */
  readonly ends: Readonly<Record<string, number>>;
}

/** The outputs that the user can see. */
export interface ShownOutputs {
  isShown(id: string): boolean;
  readonly onDidShow: vscode.Event<string>;
}

/**
 * The results that the user has not opened yet. Stored with the workspace, because it is about what this user has seen
 * on this machine. The results of subtasks are for the tasks that launched them, so they are never unread.
 */
export class Unread implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<readonly string[]>();
  /** Fires with the IDs of tasks that were read; an empty list stands for all tasks. */
  readonly onDidChange = this.changes.event;
  private readonly subscription: vscode.Disposable;
  private read: ReadResults;
  /** The IDs of the requests that {@link next} has returned. */
  private readonly visited = new Set<string>();

  constructor(
    private readonly known: Pick<Tasks, "child" | "children" | "onDidChange">,
    private readonly folders: Pick<Folders, "sessionIDs">,
    private readonly memento: vscode.Memento,
    outputs: ShownOutputs,
  ) {
    const stored = memento.get<ReadResults>(READ);
    this.read = stored ?? { until: Date.now(), ends: {} };
    if (!stored) this.store(this.read);
    this.subscription = vscode.Disposable.from(
      outputs.onDidShow((id) => this.markRead(id)),
      known.onDidChange(({ after }) => {
        if (after && outputs.isShown(after.id)) this.markRead(after.id);
      }),
    );
  }

  /** Whether this is a task that completed or failed, and whose output the user has not seen since. */
  has(child: Child): child is Task {
    return (
      isTask(child) &&
      !isRunning(child) &&
      child.status !== "cancelled" &&
      !isCleared(child) &&
      endOf(child) > this.read.until &&
      this.read.ends[child.id] !== endOf(child) &&
      this.known.child(child.parentSessionID) === undefined
    );
  }

  /** The unread tasks of the folders' active sessions, the one that ended last first. */
  list(): readonly Task[] {
    return this.folders.sessionIDs
      .flatMap((id) => this.known.children(id))
      .filter((child) => this.has(child))
      .sort((a, b) => endOf(b) - endOf(a));
  }

  /**
   * The task or subagent to look at next: one that waits for the user, otherwise the unread one that ended last. Each
   * request comes once before any comes again, so that one that is left for later hides nothing.
   */
  next(requests: readonly OpenRequest[]): string | undefined {
    const [unread] = this.list();
    const fresh = requests.find(({ request }) => !this.visited.has(request.id));
    if (!fresh) this.visited.clear();
    const asked = fresh ?? (unread ? undefined : requests[0]);
    if (asked) this.visited.add(asked.request.id);
    return (asked?.child ?? unread)?.id;
  }

  markRead(id: string): void {
    const child = this.known.child(id);
    if (!child || !this.has(child)) return;
    const ends = Object.entries({ ...this.read.ends, [id]: endOf(child) }).sort(([, a], [, b]) => b - a);
    const until = ends[STORED]?.[1] ?? this.read.until;
    this.store({ until, ends: Object.fromEntries(ends.slice(0, STORED)) });
    this.changes.fire([id]);
  }

  markAllRead(): void {
    this.store({ until: Math.max(Date.now(), ...this.list().map(endOf)), ends: {} });
    this.changes.fire([]);
  }

  dispose(): void {
    this.subscription.dispose();
    this.changes.dispose();
  }

  private store(read: ReadResults): void {
    this.read = read;
    void this.memento.update(READ, read);
  }
}
