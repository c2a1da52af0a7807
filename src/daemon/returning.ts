import { Refusal } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import type { FolderCalls, FolderMethod } from "../rpc/contract.ts";
import { methodNames } from "../rpc/methods.ts";
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
  "image",
  "models",
  "agents",
  "planAgentTools",
  "applyAgentTools",
]);

/** Calls that take a worktree for one without a task unless they know the task. */
const NEED_TASKS: ReadonlySet<FolderMethod> = new Set<FolderMethod>(["listWorktrees", "cleanUpWorktree"]);

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

  /** Resolves once the folder has its tasks again, or it is known that it can't. */
  async wait(): Promise<void> {
    if (!this.isBack && this.connecting.state.kind !== "failed" && this.isUsed())
      await this.connecting.join();
  }

  /** The calls, which wait for the folder's tasks. */
  whenBack(calls: FolderCalls): FolderCalls {
    const waiting = methodNames.map((name) => {
      const call = calls[name] as (...args: unknown[]) => Promise<unknown>;
      return [
        name,
        WITHOUT_TASKS.has(name) ? call : (...args: unknown[]) => this.call(name, () => call(...args)),
      ];
    });
    return Object.fromEntries(waiting) as FolderCalls;
  }

  private async call(name: FolderMethod, call: () => Promise<unknown>): Promise<unknown> {
    await this.wait();
    if (NEED_TASKS.has(name) && !this.isConnected) throw notConnected();
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
