import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { findRepository } from "./repository.ts";
import { runSetup, type SetupCommand, type SetupEnd } from "./setup-command.ts";

/** How much of the output is kept, in bytes. */
const MAX_OUTPUT = 64 * 1024;

/** The file with the output, which goes with the worktree and is no file of the work. */
export async function setupLog(directory: string): Promise<string> {
  return join((await findRepository(directory)).gitDirectory, "asyncagents-setup.log");
}

/** Undefined if there is none, or no worktree. */
export async function readLog(directory: string): Promise<string | undefined> {
  try {
    return await readFile(await setupLog(directory), "utf8");
  } catch {
    return undefined;
  }
}

/** One run of the setup command in a worktree. */
export class SetupRun {
  /** Undefined once it is in the log. */
  private kept: Buffer | undefined = Buffer.alloc(0);

  /** @param log the file for the output */
  constructor(private readonly log: string) {}

  /** The end of the output so far. Undefined once it can be read from the log. */
  get output(): string | undefined {
    return this.kept?.toString();
  }

  /** Runs the command. Rejects with a `UserFacingError` unless it succeeds. */
  async start(command: Omit<SetupCommand, "onOutput">): Promise<void> {
    let kept = Buffer.alloc(0);
    const onOutput = (chunk: Buffer): void => {
      this.kept = kept = Buffer.concat([kept, chunk]).subarray(-MAX_OUTPUT);
    };
    const end = await runSetup({ ...command, onOutput });
    try {
      await writeFile(this.log, kept);
      this.kept = undefined;
    } catch {
      // The worktree was removed meanwhile.
    }
    const problem = problemOf(end, command.timeout);
    if (problem !== undefined) throw new UserFacingError(problem);
  }
}

function problemOf(end: SetupEnd, timeout: number): Text | undefined {
  switch (end.kind) {
    case "done":
      return undefined;
    case "failed":
      return end.code === undefined
        ? sentence("The setup command was killed.")
        : sentence("The setup command failed with exit code {0}.", end.code);
    case "not-started":
      return sentence("The setup command couldn't be started: {0}.", end.reason);
    case "timed-out":
      return sentence(
        "The setup command took longer than {0} minutes (asyncagents.isolation.setupTimeout).",
        Math.round((timeout / 60_000) * 10) / 10,
      );
    case "cancelled":
      return sentence("The setup command was cancelled.");
  }
}
