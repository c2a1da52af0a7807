import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { english } from "../../../src/engine/sentence.ts";
import type { Attachment } from "../../../src/opencode/attachment.ts";
import type { ConnectionAction } from "../../../src/opencode/connection-state.ts";
import { Link } from "../../../src/opencode/link.ts";
import { ServerEvents } from "../../../src/opencode/server-events.ts";
import { SessionDirectories } from "../../../src/opencode/session-directories.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { collectGarbage } from "../../support/collect-garbage.ts";
import { until } from "../../support/wait.ts";
import { FakeClock } from "./fake-clock.ts";

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
  function linked(own: boolean, running: Attachment["running"] = () => Promise.resolve(server())): Link {
    const nothing = (): void => undefined;
    const attachment: Attachment = {
      own,
      running,
      loadTimeoutMs: 1_000,
      leave: nothing,
      finish: nothing,
    };
    return new Link({
      attachment,
      directory: "/work",
      directories: new SessionDirectories({ onUse: nothing, onRelease: () => Promise.resolve() }),
      events: new ServerEvents(clock),
      clock,
      logger: silentLogger,
      dispatch: (action) => void actions.push(action),
      onPayload: nothing,
    });
  }

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
