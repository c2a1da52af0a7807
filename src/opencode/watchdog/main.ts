import { writeSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fit } from "../schemas.ts";
import { EXIT_ALREADY_SERVED, LISTENING, watchdogConfig } from "./lease-protocol.ts";
import { AlreadyServed } from "./lease-server.ts";
import { Watchdog } from "./watchdog.ts";

/** To the file that its starter opened; a disk that takes nothing stops nobody. */
function log(line: string): void {
  try {
    writeSync(process.stderr.fd, `${new Date().toISOString()} ${line}\n`);
  } catch {
    // There is nowhere else to say it.
  }
}

async function main(): Promise<void> {
  const config = fit(watchdogConfig, JSON.parse(await text(process.stdin)));
  const env = { ...process.env };
  // It made the editor's executable run as Node; in the server's environment it would do so to every editor started there.
  delete env.ELECTRON_RUN_AS_NODE;

  const watchdog = new Watchdog(config, env, log);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => watchdog.end(signal));
  process.on("uncaughtException", (error) => {
    log(error.stack ?? error.message);
    watchdog.end("internal error");
  });
  // Whoever started the watchdog may be gone before it hears of it.
  process.stdout.on("error", () => {});
  await watchdog.run(() => process.stdout.write(`${LISTENING}\n`));
}

/** Ends once what was said to the leases is delivered; a host that does not listen is not waited for. */
function exit(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), 1_000).unref();
}

main().then(
  () => exit(0),
  (error: unknown) => {
    log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    exit(error instanceof AlreadyServed ? EXIT_ALREADY_SERVED : 1);
  },
);
