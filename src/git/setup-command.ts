import { spawn, type ChildProcess } from "node:child_process";

/** How a setup command ended. */
export type SetupEnd =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly code: number | undefined }
  | { readonly kind: "not-started"; readonly reason: string }
  | { readonly kind: "timed-out" }
  | { readonly kind: "cancelled" };

export interface SetupCommand {
  readonly directory: string;
  /** A command line of the user's shell. */
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** In milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  readonly onOutput: (chunk: Buffer) => void;
}

/** How long the output of a command that has ended may still arrive, in milliseconds. */
const DRAIN_MS = 2_000;

/**
 * Waits in the command's process group for the end of this process, and then kills the group: a command that outlived
 * it would run at the same time as the one of the next process.
 */
const GUARDED =
  '(read -r _ <&3; kill -9 0) 3<&3 >/dev/null 2>&1 & exec 3<&- || exit 1; exec "$0" -c "$1" </dev/null';

/** Runs a command with all its child processes, which end with it. */
export function runSetup(setup: SetupCommand): Promise<SetupEnd> {
  const { timeout, signal, onOutput } = setup;
  if (signal.aborted) return Promise.resolve({ kind: "cancelled" });
  const child = start(setup);
  child.stdout?.on("data", onOutput);
  child.stderr?.on("data", onOutput);
  return new Promise((resolve) => {
    let early: SetupEnd | undefined;
    let drain: NodeJS.Timeout | undefined;
    const stop = (end: SetupEnd): void => {
      early ??= end;
      killGroup(child);
    };
    const cancel = (): void => stop({ kind: "cancelled" });
    const timer = setTimeout(() => stop({ kind: "timed-out" }), timeout);
    signal.addEventListener("abort", cancel, { once: true });
    child.once("error", (error) => (early ??= { kind: "not-started", reason: error.message }));
    child.once("exit", () => {
      // What the command left running would keep its output open, even where it isn't in the group any more.
      killGroup(child);
      drain = setTimeout(() => destroyAll(child), DRAIN_MS);
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      clearTimeout(drain);
      signal.removeEventListener("abort", cancel);
      resolve(early ?? (code === 0 ? { kind: "done" } : { kind: "failed", code: code ?? undefined }));
    });
  });
}

function start({ directory, command, env }: SetupCommand): ChildProcess {
  const options = { cwd: directory, env: { ...env }, windowsHide: true } as const;
  if (process.platform === "win32")
    return spawn(env["ComSpec"] ?? "cmd.exe", ["/d", "/s", "/c", `"${command}"`], {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
      windowsVerbatimArguments: true,
    });
  return spawn("/bin/sh", ["-c", GUARDED, env["SHELL"] || "/bin/sh", command], {
    ...options,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
}

function destroyAll({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  if (process.platform === "win32") {
    spawn("taskkill", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore", windowsHide: true }).on(
      "error",
      () => {},
    );
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}
