import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { awaitHealth } from "../../../src/opencode/health.ts";

describe("awaitHealth", () => {
  it("waits longer each time for a server that is busy: one that needs a second for each response is healthy", async () => {
    const busy = createServer((_, response) => {
      const timer = setTimeout(() => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ healthy: true, version: "1.18.33" }));
      }, 900);
      response.once("close", () => clearTimeout(timer));
    });
    await once(busy.listen(0, "127.0.0.1"), "listening");
    try {
      const { port } = busy.address() as AddressInfo;
      const access = { url: `http://127.0.0.1:${port}`, username: "opencode" };
      assert.deepEqual(await awaitHealth(access, 5_000), { kind: "healthy", version: "1.18.33" });
    } finally {
      busy.closeAllConnections();
      busy.close();
    }
  });
});
