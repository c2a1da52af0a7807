import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { LogFile } from "../../../src/daemon/log-file.ts";
import type { LogLine } from "../../../src/rpc/contract.ts";
import { tempDir } from "../../support/temp.ts";

describe("the daemon's log", () => {
  let folder: string;
  const text = (name: string): string => readFileSync(join(folder, name), "utf8");

  beforeEach(() => (folder = tempDir("state")));

  it("has each line with its time and level, readable only by this user, and windows get the same lines", () => {
    const log = new LogFile(folder, () => 0);
    const lines: LogLine[] = [];
    log.onLine((line) => lines.push(line));
    log.info("Began.");
    log.debug("Detail.");
    log.error("Broke.", new Error("why"));
    assert.match(
      text("daemon.log"),
      /^1970-01-01T00:00:00\.000Z \[info\] Began\.\n.*\[error\] Broke\. Error: why/,
    );
    assert.doesNotMatch(text("daemon.log"), /Detail/);
    assert.deepEqual(
      lines.map(({ level }) => level),
      ["info", "debug", "error"],
    );
    if (process.platform !== "win32") assert.equal(statSync(join(folder, "daemon.log")).mode & 0o777, 0o600);
  });

  it("is rotated once it is too long, and one older file is kept", () => {
    const log = new LogFile(folder, () => 0, 100);
    for (let line = 0; line < 20; line++) log.info(`line ${line} ${"x".repeat(40)}`);
    assert.match(text("daemon.log"), /line 19/);
    assert.ok(statSync(join(folder, "daemon.log")).size < 300);
    assert.ok(statSync(join(folder, "daemon.log.1")).size < 300);
  });

  it("does not fail if it cannot be written", () => {
    const log = new LogFile(join(folder, "none"), () => 0);
    const lines: LogLine[] = [];
    log.onLine((line) => lines.push(line));
    log.info("Said all the same.");
    rmSync(folder, { recursive: true });
    assert.equal(lines.length, 1);
  });
});
