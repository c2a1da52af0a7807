import assert from "node:assert/strict";
import type { BringBackPlan, PlannedFile } from "../../../src/engine/bring-back.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { WorktreeWork } from "../../../src/engine/worktree-work.ts";

type Parts = ConstructorParameters<typeof WorktreeWork>[0];

function planOf(...files: readonly Pick<PlannedFile, "path" | "conflict" | "isBinary">[]): BringBackPlan {
  const changed = files.map((file) => ({ kind: "modified" as const, added: 1, removed: 1, ...file }));
  return { files: changed } as Partial<BringBackPlan> as BringBackPlan;
}

describe("Letting the agent merge", () => {
  const picture = { path: "picture.bin", conflict: "content", isBinary: true } as const;
  const link = { path: "link", conflict: "kind", isBinary: false } as const;
  const text = { path: "a.txt", conflict: "content", isBinary: false, hasMarkers: true } as const;
  let prompts: string[];
  let taken: number;
  let noted: object[];

  beforeEach(() => {
    prompts = [];
    taken = 0;
    noted = [];
  });

  function merge(
    plan: BringBackPlan,
    run: (prompt: string) => unknown = (prompt) => prompts.push(prompt),
  ): Promise<unknown> {
    const entry = { record: { id: "ses_a" } };
    const parts = {
      registry: { find: () => entry },
      git: { takeIn: () => Promise.resolve(`base ${++taken}`) },
      worktrees: {
        requireOwn: () => ({ name: "work" }),
        requireFor: () => Promise.resolve(),
        released: (_: unknown, use: (worktree: object) => Promise<unknown>) => use({}),
        noteNow: (_: unknown, facts: object) => Promise.resolve(void noted.push(facts)),
      },
      resume: { requireResumable: () => undefined, run: async (_: string, prompt: string) => run(prompt) },
    };
    return new WorktreeWork(parts as unknown as Parts).letAgentMerge("ses_a", plan);
  }

  it("is refused if no conflict can be merged as text, whatever else there is", async () => {
    const clean = { ...text, path: "clean.txt", conflict: undefined };
    for (const files of [[picture, link], [picture, clean], [clean]])
      await assert.rejects(merge(planOf(...files)), {
        code: "invalid-argument",
        message: "None of the files in conflict can be merged as text. Choose whose version to use instead.",
      });
    assert.deepEqual([taken, prompts], [0, []]);
  });

  it("takes the folder's state in", async () => {
    await merge(planOf(text, { ...text, path: "clean.txt", conflict: undefined }));
    assert.deepEqual([noted, prompts.length], [[{ base: "base 1" }], 1]);
  });

  it("says what was done if the agent can't be asked", async () => {
    const refuse = (): never => {
      throw new Refusal("being-resumed", "Wait.");
    };
    await assert.rejects(merge(planOf(text), refuse), {
      code: "partly-done",
      message:
        "The folder's changes were merged into the worktree, but the agent couldn't be asked to resolve the conflicts. Wait.",
    });
    assert.deepEqual(noted, [{ base: "base 1" }]);
  });

  it("says what happened, and what to do", async () => {
    await merge(planOf(text, { ...text, path: "b.txt", conflict: "deleted-by-agent" }, picture));
    const intro =
      "While you worked, the user changed the folder that your worktree was made from. Its present state has been merged into your worktree, but these files are in conflict:";
    const list = "- a.txt (both sides changed the same part)\n- b.txt (you deleted it, the user changed it)";
    const task =
      'Where both sides changed the same lines, the file contains conflict markers: the side "Your changes" is the user\'s, the side "Changes by the agent" is yours. Resolve every conflict so that both intentions are kept, remove all markers, and check that the result works. Then say how you resolved each one.';
    const left =
      "These files are in conflict, too, but can't be merged as text. They are still as you left them; leave them so, as the user will decide on them:";
    assert.equal(prompts[0], [intro, list, task, left, "- picture.bin"].join("\n\n"));
    await merge(planOf(text));
    assert.equal(prompts[1], [intro, list.split("\n")[0], task].join("\n\n"));
  });

  it("asks to leave the files on which only the user can decide", async () => {
    await merge(planOf(picture, link, text, { ...text, path: "clean.txt", conflict: undefined }));
    const lists = prompts[0]?.split("\n\n").filter((part) => part.startsWith("- "));
    assert.deepEqual(lists, ["- a.txt (both sides changed the same part)", "- picture.bin\n- link"]);
    await merge(planOf(text));
    assert.doesNotMatch(prompts[1] ?? assert.fail(), /merged as text/);
  });
});
