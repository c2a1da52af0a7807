/** Runs one function of the Git layer in a process of its own, which a test kills: `killed.js <function> <options as JSON>`. */
import { makeWorktree, remakeWorktree } from "../../../src/git/make-worktree.ts";
import { removeWorktree } from "../../../src/git/remove-worktree.ts";

const functions = { makeWorktree, remakeWorktree, removeWorktree };
const [name, options = ""] = process.argv.slice(2);
await functions[name as keyof typeof functions](JSON.parse(options));
