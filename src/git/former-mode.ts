import { Serial } from "../engine/serial.ts";
import { git } from "./git.ts";

/** A task may have deleted hundreds of files, for which windows ask at the same time. */
const questions = new Serial();

/** The mode that a missing file has in the last commit, such as `100755`. Undefined if it isn't there. */
export function formerMode(directory: string, path: string): Promise<string | undefined> {
  return questions.run(async () => {
    const args = ["--literal-pathspecs", "diff-index", "--no-renames", "--no-abbrev", "HEAD", "--", path];
    // Without a repository or a commit, there is nothing to know.
    const answer = await git(directory, args).catch(() => "");
    return /^:(\d{6}) 000000 /.exec(answer.toString())?.[1];
  });
}
