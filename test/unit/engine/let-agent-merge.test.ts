import assert from "node:assert/strict";
import type { BringBackPlan, PlannedFile } from "../../../src/engine/bring-back.ts";
import { WorktreeWork } from "../../../src/engine/worktree-work.ts";

type Parts = ConstructorParameters<typeof WorktreeWork>[0];

function planOf(...files: readonly Pick<PlannedFile, "path" | "conflict" | "isBinary">[]): BringBackPlan {
  const changed = files.map((file) => ({ kind: "modified" as const, added: 1, removed: 1, ...file }));
  return { files: changed } as Partial<BringBackPlan> as BringBackPlan;
}

describe("Letting the agent merge", () => {
  const picture = { path: "picture.bin", conflict: "content", isBinary: true } as const;
  const link = { path: "link", conflict: "kind", isBinary: false } as const;
  const text = { path: "a.txt", conflict: "content", isBinary: false } as const;
  let prompts: string[];
  let taken: number;

  beforeEach(() => {
    prompts = [];
    taken = 0;
  });

  function merge(plan: BringBackPlan): Promise<unknown> {
    const entry = { record: { id: "ses_a" } };
    const parts = {
      registry: { find: () => entry },
      git: { takeIn: () => Promise.resolve(`base ${++taken}`) },
      worktrees: {
        requireOwn: () => ({ name: "work" }),
        requireFor: () => Promise.resolve(),
        released: (_: unknown, use: (worktree: object) => Promise<unknown>) => use({}),
        noteNow: () => Promise.resolve(),
      },
      resume: { requireResumable: () => undefined, run: (_: string, prompt: string) => prompts.push(prompt) },
    };
    return new WorktreeWork(parts as unknown as Parts).letAgentMerge("ses_a", plan);
  }

  it("is refused if no conflict can be merged as text", async () => {
    await assert.rejects(merge(planOf(picture, link)), /None of the files in conflict can be merged as text/);
    assert.deepEqual([taken, prompts], [0, []]);
  });

  it("asks to leave the files on which only the user can decide", async () => {
    await merge(planOf(picture, link, text, { ...text, path: "clean.txt", conflict: undefined }));
    const lists = prompts[0]?.split("\n\n").filter((part) => part.startsWith("- "));
    assert.deepEqual(lists, ["- a.txt (both sides changed the same part)", "- picture.bin\n- link"]);
    await merge(planOf(text));
    assert.doesNotMatch(prompts[1] ?? assert.fail(), /merged as text/);
  });
});
