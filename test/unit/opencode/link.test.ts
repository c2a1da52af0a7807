import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { Attachment } from "../../../src/opencode/attachment.ts";
import type { ConnectionAction } from "../../../src/opencode/connection-state.ts";
import { Link, type LinkOptions } from "../../../src/opencode/link.ts";
import { ServerEvents } from "../../../src/opencode/server-events.ts";
import { SessionDirectories } from "../../../src/opencode/session-directories.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { collectGarbage } from "../../support/collect-garbage.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";

function linkTo(
  server: Pick<Attachment, "own" | "running">,
  options: Pick<LinkOptions, "clock" | "dispatch">,
  directories = new SessionDirectories(),
  events = new ServerEvents(options.clock),
): Link {
  const nothing = (): void => undefined;
  return new Link({
    ...options,
    attachment: { ...server, loadTimeoutMs: 1_000, leave: nothing, finish: nothing, giveUp: nothing },
    directory: "/work",
    directories,
    events,
    logger: silentLogger,
    onPayload: nothing,
  });
}

describe("The link to a server that doesn't respond", () => {
  let clock: FakeClock;
  let actions: ConnectionAction[];
  /** Where nobody listens. */
  let url: string;

  before(async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await once(server.close(), "close");
  });
  beforeEach(() => {
    clock = new FakeClock();
    actions = [];
  });

  /** @param ended when its process has ended */
  const server = (ended?: Promise<unknown>) => ({ url, username: "opencode", ended });

  /** @param running resolves to the server each time that the link asks for it */
  const linked = (own: boolean, running: Attachment["running"] = () => Promise.resolve(server())): Link =>
    linkTo({ own, running }, { clock, dispatch: (action) => void actions.push(action) });

  /** The remedy that users are told after the first attempt. */
  async function remedy(own: boolean): Promise<string> {
    const link = linked(own);
    const [action] = await until("the cut", () => actions.length > 0 && actions);
    link.dispose();
    assert.ok(action?.type === "cut");
    assert.equal(action.failure.code, "unreachable");
    return english(action.failure.remedy ?? "");
  }

  it("tells what to do about a server that the user runs", async () => {
    assert.match(await remedy(false), /^Start `opencode serve` there, or clear asyncagents\.server\.url/);
  });

  it("doesn't tell to run a server or to clear an address if the extension started the server", async () => {
    assert.equal(await remedy(true), "Connect again. If that doesn't help, restart the server.");
  });

  it("waits once for the end of the server, however often it connects, and notices it", async () => {
    let waits = 0;
    let hasEnded = false;
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const counted = Object.assign(ended, {
      then: (...handlers: Parameters<Promise<void>["then"]>) => {
        waits++;
        return Promise.prototype.then.apply(ended, handlers);
      },
    });
    let asked = 0;
    const link = linked(true, () => {
      asked++;
      return hasEnded ? new Promise(() => undefined) : Promise.resolve(server(counted));
    });
    for (let attempt = 1; attempt <= 3; attempt++) {
      await until("the cut", () => actions.length === attempt && clock.pending === 1);
      clock.advance(10_000);
    }
    await until("the pause after the last cut", () => actions.length === 4 && clock.pending === 1);
    assert.deepEqual([asked, waits], [4, 1]);
    hasEnded = true;
    end();
    // Without waiting for the pause to end.
    await until("the next attempt", () => asked === 5);
    link.dispose();
  });

  it("is released once it is disposed, even if the server runs on", async () => {
    const ended = new Promise<void>(() => undefined);
    const released = await (async () => {
      const link = linked(true, () => Promise.resolve(server(ended)));
      await until("the cut", () => actions.length > 0);
      link.dispose();
      return new WeakRef(link);
    })();
    await until("the release", () => {
      collectGarbage();
      return released.deref() === undefined;
    });
    assert.ok(ended);
  });
});

describe("The link to a server that responds", () => {
  let clock: FakeClock;
  let actions: ConnectionAction[];
  let server: Server;
  /** What it responds with in place of OpenCode. */
  let status: number | undefined;
  /** The folder of the next link. */
  let folder: string;
  /** The directories that it was asked to release. */
  let released: string[];
  let link: Link;

  beforeEach(async () => {
    clock = new FakeClock();
    actions = [];
    status = undefined;
    folder = "/work";
    released = [];
    server = createHttpServer(({ url = "", headers }, response) => {
      if (status !== undefined) return response.writeHead(status, { "content-type": "text/html" }).end("-");
      if (url.startsWith("/global/event")) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        return response.write('data: {"payload":{"type":"server.connected","properties":{}}}\n\n');
      }
      if (url === "/instance/dispose")
        released.push(decodeURIComponent(String(headers["x-opencode-directory"])));
      const answer = url.startsWith("/path") ? { directory: folder } : { healthy: true, version: "1.18.33" };
      response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    link.dispose();
    server.closeAllConnections();
    await once(server.close(), "close");
  });

  /** A link whose events arrive. */
  async function opened(
    own: boolean,
    directories?: SessionDirectories,
    events?: ServerEvents,
  ): Promise<void> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const running = () => Promise.resolve({ url, username: "opencode" });
    const dispatch = (action: ConnectionAction): void => {
      actions.push(action);
      if (action.type === "failed") link.dispose();
    };
    link = linkTo({ own, running }, { clock, dispatch }, directories, events);
    await until("the events", () => link.client && actions.at(-1)?.type === "opened");
  }

  it("is opened again at an address of the user where something else answers for a moment", async () => {
    await opened(false);
    status = 502;
    server.closeAllConnections();
    await until("the pause", () => actions.length === 2 && clock.pending === 1);
    clock.advance(10_000);
    const [, , action] = await until("its answer", () => actions.length === 3 && actions);
    assert.ok(action?.type === "cut", action?.type);
    assert.equal(action.failure.code, "not-opencode");
    status = undefined;
    await until("the pause", () => clock.pending === 1);
    clock.advance(10_000);
    await until("the events", () => actions.at(-1)?.type === "opened");
  });

  it("ends at an address of the user where the password is rejected", async () => {
    await opened(false);
    status = 401;
    link.reopen();
    const [, action] = await until("the end", () => actions.length === 2 && actions);
    assert.ok(action?.type === "failed");
    assert.equal(action.failure.code, "wrong-password");
  });

  it("releases the folder and the worktrees in which something may be running when it finishes with its own server", async () => {
    const directories = new SessionDirectories();
    await opened(true, directories);
    directories.use("/tree");
    link.finish();
    await until("the releases", () => released.length === 2);
    assert.deepEqual(released.sort(), ["/tree", "/work"]);
  });

  it("doesn't release a worktree that is also open as a folder when it finishes", async () => {
    const events = new ServerEvents(clock);
    folder = "/tree";
    await opened(true, undefined, events);
    const other = link;
    folder = "/work";
    const directories = new SessionDirectories();
    directories.setFolder("/work");
    directories.use("/tree");
    directories.use("/another");
    actions = [];
    await opened(true, directories, events);
    link.finish();
    await until("the releases", () => released.length === 2);
    other.dispose();
    assert.deepEqual(released.sort(), ["/another", "/work"]);
  });

  it("doesn't release its own folder when it finishes if that is a worktree in which a task of another folder works", async () => {
    const events = new ServerEvents(clock);
    await opened(true, undefined, events);
    link.add("/tree");
    const other = link;
    folder = "/tree";
    const directories = new SessionDirectories();
    directories.setFolder("/tree");
    directories.use("/another");
    actions = [];
    await opened(true, directories, events);
    link.finish();
    await until("the release", () => released.length > 0);
    other.dispose();
    assert.deepEqual(released, ["/another"]);
  });

  it("doesn't count a worktree as released if the server refuses to, and says so", async () => {
    await opened(true);
    status = 500;
    await assert.rejects(
      link.release("/tree"),
      (error) =>
        error instanceof ServerFailure && error.reason === "refused" && /dispose/.test(error.message),
    );
  });
});
