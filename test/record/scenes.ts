import { script, type ScriptStep } from "../support/script.ts";

/** One turn that is recorded. */
export interface Scene {
  readonly name: string;
  /** Running commands needs the user's permission. */
  readonly asks?: boolean;
  /** What happens once the model has begun to answer. */
  readonly meanwhile?: "interrupt" | "crash";
  /** What a real model is asked to do. */
  readonly words: string;
  /** What the scripted model does. */
  steps(shell: string): readonly ScriptStep[];
}

const runs = (shell: string): readonly ScriptStep[] => [
  { tools: [{ name: shell, args: { command: "echo hello", description: "Say hello" } }] },
  { text: "Done." },
];
const RUN = "Run the shell command `echo hello`, then answer with one word: done.";
const COUNT = "Write the numbers from 1 to 500 in words, without using any tool.";
/** Enough text for several events, then silence. */
const counts = (): readonly ScriptStep[] => [
  { text: "one two three four five", gap: 50, gate: "never", gateAfterText: true },
];
const COLOURS = {
  question: "Which colour?",
  header: "Colour",
  options: [
    { label: "Red", description: "Like fire" },
    { label: "Blue", description: "Like water" },
  ],
};

export const SCENES: readonly Scene[] = [
  { name: "text", words: "Answer with one word: hello.", steps: () => [{ text: "Hello." }] },
  { name: "tool", words: RUN, steps: runs },
  { name: "permission", asks: true, words: RUN, steps: runs },
  {
    name: "question",
    words: "Ask me with your question tool whether I want red or blue. Then answer with my choice.",
    steps: () => [{ tools: [{ name: "question", args: { questions: [COLOURS] } }] }, { text: "Seen." }],
  },
  { name: "interrupt", meanwhile: "interrupt", words: COUNT, steps: counts },
  { name: "crash", meanwhile: "crash", words: COUNT, steps: counts },
];

export function promptOf(scene: Scene, shell: string, isScripted: boolean): string {
  return isScripted ? script(scene.steps(shell), `${scene.words} `) : scene.words;
}
