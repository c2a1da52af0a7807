import type * as vscode from "vscode";

const AGENT = "asyncagents.lastAgent";
const DRAFTS = "asyncagents.drafts";
/** How many drafts are kept. */
const DRAFT_COUNT = 20;

type Drafts = Readonly<Record<string, string>>;

/** What the workspace remembers from one launch or answer to the next. */
export class LaunchMemory {
  constructor(private readonly state: vscode.Memento) {}

  /** The agent that a person launched last. */
  get agent(): string | undefined {
    return this.state.get<string>(AGENT);
  }

  keepAgent(agent: string): void {
    void this.state.update(AGENT, agent);
  }

  /** What was written and not used yet; empty: nothing. */
  draft(name: string): string {
    return this.drafts[name] ?? "";
  }

  /** An empty text drops the draft. */
  keepDraft(name: string, text: string): void {
    if (this.draft(name) === text) return;
    const others = Object.entries(this.drafts).filter(([other]) => other !== name);
    const kept = text.trim() === "" ? others : [...others, [name, text] as const];
    void this.state.update(DRAFTS, Object.fromEntries(kept.slice(-DRAFT_COUNT)));
  }

  /** The text was used; what was written under the name meanwhile stays. */
  dropDraft(name: string, text: string): void {
    if (this.draft(name) === text) this.keepDraft(name, "");
  }

  private get drafts(): Drafts {
    return this.state.get<Drafts>(DRAFTS, {});
  }
}
