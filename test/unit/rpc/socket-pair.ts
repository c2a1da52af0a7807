import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { listenExclusively } from "../../../src/rpc/daemon-entry.ts";
import { tempDir } from "../../support/temp.ts";

/** The two ends of a connection. */
export async function socketPair() {
  const path = join(tempDir("rpc"), "pair.sock");
  const server = createServer();
  const connection = once(server, "connection") as Promise<[Socket]>;
  assert.ok(await listenExclusively(server, path));
  const near = connect(path);
  const [far] = await connection;
  return { near, far, dispose: () => void (near.destroy(), far.destroy(), server.close()) };
}
