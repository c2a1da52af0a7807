import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { checkedFetch } from "../../../src/opencode/checked-fetch.ts";
import { GroupPort } from "../../../src/state/group-port.ts";
import { startStranger } from "../../support/stranger.ts";
import { until } from "../../support/wait.ts";

describe("The way to a server of our own", () => {
  const closings: (() => void)[] = [];
  afterEach(() => closings.splice(0).forEach((close) => close()));

  async function serve(respond: (request: IncomingMessage, response: ServerResponse) => void) {
    const server = createServer(respond);
    let connections = 0;
    server.on("connection", () => connections++);
    await once(server.listen(0, "127.0.0.1"), "listening");
    closings.push(() => (server.close(), server.closeAllConnections()));
    const { port } = server.address() as AddressInfo;
    const open = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    return { port, url: `http://127.0.0.1:${port}`, connections: () => connections, open };
  }

  it("sends nothing if the server doesn't listen any more, also if it did so until the connection was made", async () => {
    const stranger = await startStranger();
    closings.push(() => stranger.close());
    const send = checkedFetch(() => Promise.resolve(false));
    const error = await send(`${stranger.url}/session`, { headers: { Authorization: "Basic x" } }).catch(
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof TypeError);
    assert.equal((error.cause as { code?: unknown }).code, "ECONNREFUSED");
    assert.deepEqual(stranger.received, []);
  });

  it("sends nothing and closes the connection if it can't be told whether the server listens", async () => {
    const { url, connections, open } = await serve((_, response) => response.end("{}"));
    const send = checkedFetch(() => Promise.reject(Object.assign(new Error("too many"), { code: "EMFILE" })));
    await assert.rejects(send(url), ({ cause }: Error) => (cause as { code?: unknown }).code === "EMFILE");
    await until("the connection to be closed", async () => connections() === 1 && (await open()) === 0);
  });

  it("asks once for each connection, and uses a connection again", async () => {
    const { url, connections } = await serve((_, response) => response.end("{}"));
    let asked = 0;
    const send = checkedFetch(() => Promise.resolve(++asked > 0));
    for (let call = 0; call < 5; call++) assert.equal(await (await send(url)).text(), "{}");
    assert.deepEqual([asked, connections()], [1, 1]);
  });

  it("carries method, headers, body, status and streams, and doesn't follow redirects", async () => {
    const { url } = await serve((request, response) => {
      if (request.url === "/gone") return response.writeHead(302, { Location: "http://127.0.0.1:9/" }).end();
      if (request.url === "/nothing") return response.writeHead(204).end();
      response.writeHead(201, "Made", { "Content-Type": "text/plain" });
      response.write(`${request.method} ${request.headers["x-place"]?.toString()} `);
      request.pipe(response);
    });
    const send = checkedFetch(() => Promise.resolve(true));
    const made = await send(new Request(url, { method: "POST", headers: { "x-place": "ä" }, body: "Ω" }));
    assert.deepEqual(
      [made.status, made.statusText, made.headers.get("content-type")],
      [201, "Made", "text/plain"],
    );
    assert.equal(await made.text(), "POST ä Ω");
    assert.equal((await send(`${url}/gone`)).status, 302);
    const nothing = await send(`${url}/nothing`);
    assert.deepEqual([nothing.status, nothing.body], [204, null]);
  });

  it("fails like fetch: with the caller's reason if cancelled, else with a TypeError that has a cause", async () => {
    const { url } = await serve((request, response) => {
      if (request.url === "/breaks") response.writeHead(200).write("half");
      if (request.url === "/breaks") setImmediate(() => response.destroy());
    });
    const send = checkedFetch(() => Promise.resolve(true));
    const abort = new AbortController();
    const waiting = send(`${url}/silent`, { signal: abort.signal });
    const reason = new DOMException("No answer.", "TimeoutError");
    abort.abort(reason);
    assert.equal(await waiting.catch((error: unknown) => error), reason);
    const half = await send(`${url}/breaks`);
    await assert.rejects(
      half.text(),
      (error: Error) => error instanceof TypeError && error.cause !== undefined,
    );
  });

  it("knows by the process's own sockets whether it listens", async function () {
    if (process.platform !== "linux") return this.skip();
    const { port } = await serve((_, response) => response.end());
    // This process may belong to a group of another.
    const group = Number(/\) \S \d+ (\d+)/.exec(readFileSync("/proc/self/stat", "utf8"))?.[1]);
    const own = new GroupPort(group, port);
    assert.equal(await own.isListened(), true);
    assert.equal(await new GroupPort(group, 1).isListened(), undefined);
    for (const close of closings.splice(0)) close();
    assert.equal(await own.isListened(), false);
    const again = createServer().listen(port, "127.0.0.1");
    await once(again, "listening");
    closings.push(() => again.close());
    assert.equal(await own.isListened(), true);
  });
});
