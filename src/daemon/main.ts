import { homedir } from "node:os";
import { text } from "node:stream/consumers";
import { EXIT_ALREADY_SERVED, LISTENING, type DaemonConfig } from "../rpc/daemon-program.ts";
import { Daemon } from "./daemon.ts";

/** How long the last messages to windows may take to be delivered, in milliseconds. */
const DELIVERY_MS = 1_000;

async function main(): Promise<void> {
  const config = JSON.parse(await text(process.stdin)) as DaemonConfig;
  const grace = process.env.ASYNCAGENTS_DAEMON_GRACE_MS;
  // The variable made the editor's executable run as Node. Child processes must not inherit it.
  delete process.env.ELECTRON_RUN_AS_NODE;
  const daemon = await Daemon.start({
    ...config,
    home: homedir(),
    script: process.argv[1] ?? "",
    ...(grace === undefined ? {} : { graceMs: Number(grace) }),
    onEnd: () => exit(0),
  });
  if (!daemon) return exit(EXIT_ALREADY_SERVED);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => void daemon.end(signal));
  process.on("unhandledRejection", (error) => daemon.noteFailure("A promise was rejected.", error));
  process.on("uncaughtException", (error) => {
    daemon.noteFailure("The daemon ends, as something went wrong.", error);
    process.exit(1);
  });
  // The process that started the daemon may have exited before it reads this line.
  process.stdout.on("error", () => {});
  process.stdout.write(`${LISTENING}\n`);
}

/** Exits once the messages to the windows are delivered, or after a timeout if a window does not read. */
function exit(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), DELIVERY_MS).unref();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
});
