import { build } from "esbuild";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { tempDir } from "../../support/temp.ts";

/** Before or after a call of Git that is counted from 1. */
export interface Moment {
  readonly when: "before" | "after";
  readonly call: number;
}

/** Runs functions of the Git layer in processes that are killed without a chance to clean up. */
export class KillAtGitCall {
  private readonly folder = tempDir("kill");
  private readonly program = join(this.folder, "killed.mjs");
  private readonly git = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

  async prepare(): Promise<void> {
    const entryPoints = [join(import.meta.dirname, "killed.ts")];
    await build({ entryPoints, outfile: this.program, bundle: true, platform: "node", format: "esm" });
    const bin = join(this.folder, "bin");
    mkdirSync(bin);
    writeFileSync(
      join(bin, "git"),
      `#!/bin/sh
call=1
# -C: an existing file is not overwritten. Unlike mkdir, this starts no process.
set -C
until { true >"$CALLS/$call"; } 2>/dev/null; do call=$((call + 1)); done
if [ "$KILL" = "before $call" ]; then kill -9 $PPID; exit 1; fi
"${this.git}" "$@"
code=$?
if [ "$KILL" = "after $call" ]; then kill -9 $PPID; fi
exit $code
`,
    );
    chmodSync(join(bin, "git"), 0o755);
  }

  /** Runs the function to its end and returns each moment at which it can be killed. */
  moments(name: string, options: object): Moment[] {
    const { calls, error } = this.run(name, options, "");
    if (error !== "") throw new Error(error);
    return Array.from({ length: calls }, (_, index) => index + 1).flatMap((call) => [
      { when: "before", call },
      { when: "after", call },
    ]);
  }

  /** Returns whether the function was killed, rather than ended before that. */
  kill(name: string, options: object, { when, call }: Moment): boolean {
    return this.run(name, options, `${when} ${call}`).isKilled;
  }

  private run(
    name: string,
    options: object,
    kill: string,
  ): { readonly calls: number; readonly isKilled: boolean; readonly error: string } {
    const calls = tempDir("calls");
    const { signal, stderr } = spawnSync(process.execPath, [this.program, name, JSON.stringify(options)], {
      encoding: "utf8",
      env: {
        ...process.env,
        PATH: `${join(this.folder, "bin")}${delimiter}${process.env["PATH"]}`,
        CALLS: calls,
        KILL: kill,
      },
    });
    return { calls: readdirSync(calls).length, isKilled: signal === "SIGKILL", error: stderr };
  }
}
