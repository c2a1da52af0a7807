/** Runs one function of the Git layer in a process of its own, which a test kills: `killed.js <function> <options as JSON>`. */
import { planBringBack } from "../../../src/git/bring-back.ts";
import { discard } from "../../../src/git/discard.ts";
import { makeWorktree, remakeWorktree } from "../../../src/git/make-worktree.ts";
import { changesOf } from "../../../src/git/plan-contents.ts";
import { removeWorktree } from "../../../src/git/remove-worktree.ts";
import { writeBack } from "../../../src/git/write-back.ts";

/** Brings everything back, one file after the other. */
async function bringBack(options: Parameters<typeof planBringBack>[0]): Promise<void> {
  const plan = await planBringBack(options);
  for (const file of plan.files) await writeBack(plan, await changesOf(plan, file, "merged"));
}

const functions = { bringBack, discard, makeWorktree, planBringBack, remakeWorktree, removeWorktree };
const [name, options = ""] = process.argv.slice(2);
await functions[name as keyof typeof functions](JSON.parse(options));
