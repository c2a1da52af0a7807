import type * as vscode from "vscode";

const AGENT = "asyncagents.lastAgent";
const DRAFTS = "asyncagents.drafts";
const PROMPTS = "asyncagents.recentPrompts";
/** The number of drafts kept. */
const DRAFT_COUNT = 20;
/** The number of prompts kept, and the maximum number of characters in each. */
const PROMPT_COUNT = 20;
const PROMPT_LENGTH = 20_000;

type Drafts = Readonly<Record<string, string>>;

/** What the workspace remembers between launches and between answers. */
export class LaunchMemory {
  constructor(private readonly state: vscode.Memento) {}

  /** The agent that the user launched last. */
  get agent(): string | undefined {
    return this.state.get<string>(AGENT);
  }

  keepAgent(agent: string): void {
    void this.state.update(AGENT, agent);
  }

  /** The unused text kept under this name; empty if there is none. */
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

  /**
   * Sends the draft with this name. The draft is removed while it is being sent; if that fails, it is restored in front
   * of what was written in the meantime.
   */
  async send<T>(name: string, send: (text: string) => Promise<T>): Promise<T> {
    const text = this.draft(name);
    this.keepDraft(name, "");
    try {
      return await send(text);
    } catch (error) {
      this.keepDraft(name, [text, this.draft(name)].filter(Boolean).join(" "));
      throw error;
    }
  }

  /** The launched prompts without duplicates, newest first. */
  get prompts(): readonly string[] {
    return this.state.get<readonly string[]>(PROMPTS, []);
  }

  keepPrompts(prompts: readonly string[]): void {
    const added = prompts.map((prompt) => prompt.trim()).filter((prompt) => prompt.length <= PROMPT_LENGTH);
    const kept = [...new Set([...added.toReversed(), ...this.prompts])].slice(0, PROMPT_COUNT);
    void this.state.update(PROMPTS, kept);
  }

  forgetPrompt(prompt: string): void {
    void this.state.update(
      PROMPTS,
      this.prompts.filter((other) => other !== prompt),
    );
  }

  forgetPrompts(): void {
    void this.state.update(PROMPTS, undefined);
  }

  private get drafts(): Drafts {
    return this.state.get<Drafts>(DRAFTS, {});
  }
}
