import { DisposableStore } from "../engine/disposable-store.ts";
import type * as vscode from "vscode";
import { isRunning } from "../engine/subagent.ts";
import type { ContextKeys, FirstStep } from "./context-keys.ts";
import type { Tasks } from "./folders/all-tasks.ts";
import type { Folders } from "./folders/folders.ts";

const DONE = "asyncagents.firstSteps";

/** In the order of the walkthrough. */
export const FIRST_STEPS = ["connect", "launch", "resume", "agentTools"] as const satisfies FirstStep[];

/** Remembers on this machine which steps of the walkthrough the user has completed. */
export class FirstSteps implements vscode.Disposable {
  private readonly done: Set<FirstStep>;
  private readonly disposables: DisposableStore;

  constructor(
    private readonly state: vscode.Memento,
    private readonly keys: Pick<ContextKeys, "set">,
    known: Pick<Tasks, "onDidChange">,
    folders: Pick<Folders, "follow">,
    /** Whether the user can see the output of this task. */
    isShown: (taskID: string) => boolean,
  ) {
    const kept = state.get<readonly string[]>(DONE, []);
    this.done = new Set(FIRST_STEPS.filter((step) => kept.includes(step)));
    for (const step of this.done) keys.set(`firstSteps.${step}`, true);
    this.disposables = new DisposableStore(
      folders.follow(({ connector }) =>
        connector.onDidChange(() => {
          if (connector.state.kind === "connected") this.finish("connect");
        }),
      ),
      known.onDidChange(({ after }) => {
        if (!after) return;
        if (after.launchedBy === "agent") this.finish("agentTools");
        else if (after.status === "completed") this.finish("launch");
        if (after.resumeCount > 0 && !isRunning(after) && isShown(after.id)) this.finish("resume");
      }),
    );
  }

  finish(step: FirstStep): void {
    if (this.done.has(step)) return;
    this.done.add(step);
    this.keys.set(`firstSteps.${step}`, true);
    void this.state.update(DONE, [...this.done]);
  }

  /** Marks the walkthrough as open: the editor ignores steps that were true before it first read their condition. */
  shown(): void {
    this.keys.set("firstSteps.shown", true);
  }

  dispose(): void {
    this.disposables.dispose();
  }
}
