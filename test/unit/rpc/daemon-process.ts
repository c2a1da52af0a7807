import { once } from "node:events";
import { text } from "node:stream/consumers";
import { EXIT_ALREADY_SERVED, LISTENING, type DaemonConfig } from "../../../src/rpc/daemon-program.ts";
import { DaemonServer } from "../../../src/rpc/daemon-server.ts";
import { systemClock } from "../../../src/rpc/clock.ts";
import { FakeHost, FakeService, silentLogger } from "./fake-host.ts";

/* A daemon as a process of its own. Its folders know their process by the latest session, and retry nothing in any time. */

const { stateFolder, version } = JSON.parse(await text(process.stdin)) as DaemonConfig;
const service = new FakeService({
  retry: () => new Promise(() => undefined),
  lastAnswer: async () => String(process.pid),
});
service.change(String(process.pid));
const server = await DaemonServer.open({
  stateFolder,
  host: new FakeHost(service),
  version,
  clock: systemClock,
  logger: silentLogger,
});
if (!server) process.exit(EXIT_ALREADY_SERVED);
process.stdout.write(`${LISTENING}\n`);
await once(process, "SIGTERM");
server.dispose();
process.exit();
