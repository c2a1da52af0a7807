import { Refusal } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import type { FolderCalls, FolderMethod } from "../rpc/contract.ts";
import { methodNames, signalOf } from "../rpc/methods.ts";
import type { Connecting } from "./connecting.ts";

/** Calls that don't depend on what tasks there are. */
const WITHOUT_TASKS: ReadonlySet<FolderMethod> = new Set<FolderMethod>([
  "join",
  "connect",
  "cancelConnecting",
  "refresh",
  "disconnect",
  "stopServer",
  "attachCommand",
  "fileSaved",
  "models",
  "agents",
  "planAgentTools",
  "applyAgentTools",
]);

/** Calls that take a worktree, or a task, for one without the other unless they know the tasks, or for one that is gone. */
const NEED_TASKS: ReadonlySet<FolderMethod> = new Set<FolderMethod>([
  "listWorktrees",
  "cleanUpWorktree",
  "image",
  "undoBringBack",
]);

/** What a daemon that knows no task yet says of one. */
const UNKNOWN: readonly string[] = ["unknown-task", "unknown-batch", "unknown-session"];

/**
 * Brings a folder back to the tasks that it had under the daemon before. Windows show them and call about them, and they
 * repeat the calls that the last daemon left unanswered, as soon as this one has opened the folder.
 */
export class Returning {
  private isBack = false;

  constructor(
    private readonly connecting: Pick<Connecting, "state" | "join" | "onDidChange">,
    private readonly isUsed: () => boolean,
  ) {
    connecting.onDidChange(() => (this.isBack ||= this.isConnected));
  }

  /** The calls, which wait for the folder's tasks. */
  whenBack(calls: FolderCalls): FolderCalls {
    const all = calls as unknown as Readonly<Record<FolderMethod, (...args: unknown[]) => Promise<unknown>>>;
    const waiting = methodNames.map((name) => {
      const call = (...args: unknown[]): Promise<unknown> => all[name](...args);
      const whenBack = (...args: unknown[]): Promise<unknown> =>
        this.run(() => call(...args), { needsTasks: NEED_TASKS.has(name), signal: signalOf(name, args) });
      return [name, WITHOUT_TASKS.has(name) ? call : whenBack];
    });
    return Object.fromEntries(waiting) as FolderCalls;
  }

  /** Makes a call once the folder has its tasks again, or it is known that it can't have them. */
  async run<T>(
    call: () => Promise<T>,
    { needsTasks, signal }: { readonly needsTasks?: boolean; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<T> {
    if (!this.isBack && this.connecting.state.kind !== "failed" && this.isUsed())
      await this.connecting.join();
    if (signal?.aborted) throw new Refusal("cancelled-by-caller", sentence("The call was cancelled."));
    if (needsTasks && !this.isBack) throw notConnected();
    try {
      return await call();
    } catch (error) {
      const isUnknown = error instanceof Refusal && UNKNOWN.includes(error.code);
      throw isUnknown && !this.isConnected ? notConnected() : error;
    }
  }

  private get isConnected(): boolean {
    return this.connecting.state.kind === "connected";
  }
}

function notConnected(): Refusal {
  return new Refusal("unavailable", sentence("OpenCode isn't connected yet. Try again."));
}
