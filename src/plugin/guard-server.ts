import { DaemonFiles } from "../rpc/daemon-files.ts";
import { isLiving, signalGroup } from "../state/processes.ts";

/** How often the daemon is looked for, in milliseconds. */
const LOOK_MS = 5_000;
/** How long the server may take to end by itself. */
const END_WITHIN_MS = 5_000;
/** OpenCode loads the plugin for each folder, and the server is one. */
const GUARDED = Symbol.for("asyncagents.guarded");

/** Ends this server and what it started once no daemon has run for so long, as nobody is left who would. */
export function guardServer(stateFolder: string, graceMs: number): void {
  if (GUARDED in process) return;
  Object.assign(process, { [GUARDED]: true });
  const files = new DaemonFiles(stateFolder);
  const everyMs = Math.min(LOOK_MS, graceMs);
  // Counted by timers, which do not go on while the machine sleeps.
  let aloneMs = 0;
  const isServed = async (): Promise<boolean> => {
    const entry = await files.read();
    return entry !== undefined && (await isLiving(entry));
  };
  const look = async (): Promise<void> => {
    // Where the file cannot be read, nobody knows that the daemon is gone.
    aloneMs = (await isServed().catch(() => true)) ? 0 : aloneMs + everyMs;
    if (aloneMs > graceMs) end();
    else setTimeout(() => void look(), everyMs).unref();
  };
  void look();
}

function end(): void {
  if (process.platform === "win32") process.exit();
  signalGroup(process.pid, "SIGTERM");
  setTimeout(() => signalGroup(process.pid, "SIGKILL"), END_WITHIN_MS).unref();
}
