import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import type { CancelSignal } from "../engine/event.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { abortable } from "./abortable.ts";
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

interface Start extends Omit<SetupCommand, "signal" | "onOutput"> {
  readonly signal: CancelSignal;
}

/** One run of the setup command in a worktree. */
export class SetupRun {
  private kept = Buffer.alloc(0);

  /** @param log the file for the output */
  constructor(private readonly log: string) {}

  /** The end of the output so far. */
  get output(): string {
    return this.kept.toString();
  }

  /** Runs the command. Rejects with a `UserFacingError` unless it succeeds. */
  async start({ signal, ...command }: Start): Promise<void> {
    const onOutput = (chunk: Buffer): void => {
      this.kept = Buffer.concat([this.kept, chunk]).subarray(-MAX_OUTPUT);
    };
    const end = await abortable(signal, (abort) => runSetup({ ...command, signal: abort, onOutput }));
    await writeFile(this.log, this.kept).catch(() => {
      // The worktree was removed meanwhile.
    });
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
