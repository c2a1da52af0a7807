import childProcess from "node:child_process";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** Looks at a process that fail. */
export interface FailingLooks {
  readonly failed: number;
  stop(): void;
}

/**
 * Until stopped, looks at the process fail with this code, by default as if this process had too many files open, or could
 * start no others.
 */
export function failLooks(pid: number, code?: string): FailingLooks {
  const { readFile } = fs;
  const { execFile } = childProcess;
  let failed = 0;
  const failure = (reason: string): Error => {
    failed++;
    return Object.assign(new Error(`${reason}: too many`), { code: reason });
  };
  fs.readFile = ((path: string, ...rest: unknown[]) =>
    path === `/proc/${pid}/stat`
      ? Promise.reject(failure(code ?? "EMFILE"))
      : (readFile as (...all: unknown[]) => unknown)(path, ...rest)) as typeof readFile;
  childProcess.execFile = ((file: string, args: readonly string[], ...rest: unknown[]) => {
    if (file !== "/bin/ps" || args.at(-1) !== String(pid))
      return (execFile as (...all: unknown[]) => unknown)(file, args, ...rest);
    return setImmediate(rest.at(-1) as (error: Error) => void, failure(code ?? "EAGAIN"));
  }) as unknown as typeof execFile;
  syncBuiltinESMExports();
  return {
    get failed() {
      return failed;
    },
    stop() {
      Object.assign(fs, { readFile });
      Object.assign(childProcess, { execFile });
      syncBuiltinESMExports();
    },
  };
}
