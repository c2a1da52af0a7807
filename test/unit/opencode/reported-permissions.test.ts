import assert from "node:assert/strict";
import { Emitter } from "../../../src/engine/event.ts";
import type { PermissionRequest, ServerEvent } from "../../../src/engine/server-model.ts";
import { ReportedPermissions, type PermissionStore } from "../../../src/opencode/reported-permissions.ts";
import { settled } from "../../support/manual-clock.ts";

describe("The permissions that events report", () => {
  let events: Emitter<ServerEvent>;
  let reported: ReportedPermissions;

  beforeEach(() => {
    events = new Emitter((error) => assert.fail(String(error)));
    reported = new ReportedPermissions(events.event);
  });

  const request = (id: string, sessionID = "ses_1"): PermissionRequest => ({
    type: "permission",
    id,
    sessionID,
    permission: "bash",
    patterns: [],
    always: [],
    metadata: {},
  });
  const ask = (id: string): void => events.fire({ type: "request-asked", request: request(id) });
  const close = (requestID: string): void =>
    events.fire({ type: "request-closed", sessionID: "ses_1", requestID });
  const ids = (): readonly string[] => reported.all().map(({ id }) => id);

  /** Reads a list, during which this happens. */
  async function read(listed: readonly PermissionRequest[], meanwhile: () => void): Promise<void> {
    const happening = settled().then(meanwhile);
    await reported.replace(
      happening.then(() => listed),
      (sessionID) => sessionID === "ses_1",
    );
  }

  it("are replaced by the list of their sessions", async () => {
    ask("per_1");
    events.fire({ type: "request-asked", request: request("per_2", "ses_2") });
    await read([request("per_3")], () => undefined);
    assert.deepEqual(ids(), ["per_2", "per_3"]);
  });

  it("keep what was asked while an older list was read", async () => {
    await read([], () => ask("per_1"));
    assert.deepEqual(ids(), ["per_1"]);
  });

  it("don't get back from an older list what was answered meanwhile, or lost its turn", async () => {
    ask("per_1");
    await read([request("per_1")], () => close("per_1"));
    assert.deepEqual(ids(), []);
    await read([request("per_2")], () =>
      events.fire({ type: "session-status", sessionID: "ses_1", status: { type: "idle" } }),
    );
    assert.deepEqual(ids(), []);
  });

  it("outlive the process, as the next one may be unable to list them", async () => {
    const kept: (readonly string[])[] = [];
    const store = (...permissions: readonly PermissionRequest[]): PermissionStore => ({
      permissions,
      keepPermissions: (open) => void kept.push(open.map(({ id }) => id)),
    });
    reported = new ReportedPermissions(events.event, store(request("per_0")));
    ask("per_1");
    close("per_0");
    close("per_0");
    assert.deepEqual(kept, [["per_0", "per_1"], ["per_1"]]);
    reported.close("per_1");
    assert.deepEqual(kept.at(-1), []);
    reported = new ReportedPermissions(events.event, store(request("per_1")));
    await assert.rejects(reported.replace(Promise.reject(new Error("400")), () => true));
    assert.deepEqual(ids(), ["per_1"]);
    await read([], () => undefined);
    assert.deepEqual([ids(), kept.at(-1)], [[], []]);
  });

  it("stay as they are if the list can't be read", async () => {
    ask("per_1");
    await assert.rejects(
      reported.replace(Promise.reject(new Error("400")), () => true),
      /400/,
    );
    assert.deepEqual(ids(), ["per_1"]);
  });
});
