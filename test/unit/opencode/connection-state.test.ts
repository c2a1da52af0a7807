import assert from "node:assert/strict";
import type { ConnectionFailure, ConnectionState } from "../../../src/engine/connection.ts";
import { reduce, type ConnectionAction } from "../../../src/opencode/connection-state.ts";
import { failures } from "../../../src/opencode/failures.ts";

describe("Connection state", () => {
  const disconnected: ConnectionState = { kind: "disconnected" };
  const connecting: ConnectionState = { kind: "connecting", detail: "Looking…" };
  const connected: ConnectionState = { kind: "connected", url: "http://x", version: "1", own: true };
  const reconnecting: ConnectionState = { kind: "reconnecting", reason: "It ended." };
  const failed: ConnectionState = { kind: "failed", failure: failures.lost() };
  const cut = (
    own: boolean,
    cuts: number,
    failure: ConnectionFailure = failures.lost(),
  ): ConnectionAction => ({
    type: "cut",
    reason: "It ended.",
    cuts,
    own,
    failure,
  });

  it("shows progress only while connecting", () => {
    const progress: ConnectionAction = { type: "progress", detail: "Starting…" };
    for (const state of [disconnected, connecting, failed])
      assert.deepEqual(reduce(state, progress), { kind: "connecting", detail: "Starting…" });
    for (const state of [connected, reconnecting]) assert.equal(reduce(state, progress), state);
  });

  it("reconnects after an interruption", () => {
    assert.deepEqual(reduce(connected, cut(false, 1)), reconnecting);
    assert.deepEqual(reduce(reconnecting, cut(false, 9)), reconnecting);
    const opened: ConnectionAction = { type: "opened", url: "http://x", version: "1", own: true };
    assert.deepEqual(reduce(reconnecting, opened), connected);
  });

  it("fails if interrupted before the first event, unless its own server is restarted", () => {
    assert.deepEqual(reduce(connecting, cut(false, 1)), failed);
    assert.deepEqual(reduce(connecting, cut(true, 6)), { kind: "connecting", detail: "It ended." });
    assert.deepEqual(reduce(connecting, cut(true, 7)), failed);
    const refusal = failures.failsInFolder("broken");
    assert.deepEqual(reduce(connecting, cut(true, 1, refusal)), { kind: "failed", failure: refusal });
  });

  it("stays identical if nothing changes", () => {
    assert.equal(reduce(disconnected, { type: "left" }), disconnected);
    assert.equal(
      failed.kind === "failed" && reduce(failed, { type: "failed", failure: failed.failure }),
      failed,
    );
    assert.deepEqual(reduce(connected, { type: "left" }), disconnected);
  });
});
