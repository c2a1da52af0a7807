import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { AnsweringWire, type Answer } from "../../../src/rpc/answering-wire.ts";
import { PROTOCOL_VERSION } from "../../../src/rpc/contract.ts";
import { listenExclusively, writeEntry } from "../../../src/rpc/daemon-entry.ts";
import { DaemonFiles, type DaemonEntry } from "../../../src/rpc/daemon-files.ts";
import { proofOf } from "../../../src/rpc/proof.ts";
import { recordProgram } from "../../../src/rpc/recorded-program.ts";
import { ensurePrivateFolder } from "../../../src/state/private-files.ts";
import { daemonEntry } from "../rpc/fake-host.ts";

/**
 * A daemon that answers as given, next to the record of a program that ends at once. Resolves to a function that closes
 * its connections.
 */
export async function answeringDaemon(
  stateFolder: string,
  answer: Answer,
  facts: Partial<DaemonEntry> = {},
): Promise<() => void> {
  await ensurePrivateFolder(stateFolder);
  const socket = join(stateFolder, "daemon.sock");
  const { execPath } = process;
  const script = join(stateFolder, "ends.cjs");
  writeFileSync(script, "process.exit(1);");
  await recordProgram(stateFolder, { execPath, script, version: "1.2.0" });
  const wires: { close(): void }[] = [];
  const server = createServer((connection) =>
    wires.push(new AnsweringWire(connection, () => undefined, answer)),
  );
  assert.ok(await listenExclusively(server, socket));
  await writeEntry(new DaemonFiles(stateFolder), daemonEntry({ socket, ...facts }));
  return () => {
    for (const wire of wires) wire.close();
    server.close();
  };
}

/** The answer of a daemon with the token `t` to a greeting. */
export function welcome(params: unknown): unknown {
  const { nonce } = params as { readonly nonce: string };
  return {
    proof: proofOf("t", "daemon", nonce),
    protocol: PROTOCOL_VERSION,
    version: "1.2.0",
    pid: process.pid,
  };
}
