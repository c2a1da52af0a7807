import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { publishEntry } from "../../../src/bridge/endpoint-entries.ts";
import { beginWrite } from "../../../src/plugin/begin-write.ts";
import { tempDir } from "../../support/temp.ts";

describe("Beginning to write a file", () => {
  const directory = tempDir("write");
  const server = new URL("http://127.0.0.1:4999");
  let stateFolder: string;
  const listeners: Server[] = [];

  beforeEach(() => {
    stateFolder = join(tempDir("write-state"), "state");
  });
  afterEach(() => {
    for (const listener of listeners.splice(0)) listener.close();
  });

  /** An endpoint that sends this to each client. */
  async function serve(text: string, directories = [directory]): Promise<Server> {
    const listener = createServer((socket) => socket.on("error", () => undefined).write(text));
    listeners.push(listener);
    await once(listener.listen(0, "127.0.0.1"), "listening");
    const { port } = listener.address() as AddressInfo;
    const entry = { directories, server: server.href, port, token: "secret", openedAt: 1 };
    await publishEntry(stateFolder, { ...entry, pid: process.pid });
    return listener;
  }

  /** One that ends the connection after it, as an endpoint does. */
  async function answer(reply: object, directories?: string[]): Promise<void> {
    const listener = await serve(`HTTP/1.1 200 OK\r\n\r\n${JSON.stringify(reply)}\n`, directories);
    listener.on("connection", (socket) => socket.end());
  }

  const begin = (patienceMs = 10_000): Promise<string | undefined> =>
    beginWrite(
      { sessionID: "ses_1", paths: [join(directory, "a.txt")] },
      { stateFolder, directory, server, patienceMs },
    );

  it("is refused with the daemon's reason", async () => {
    await answer({ type: "refused", message: "Read it again." });
    assert.equal(await begin(), "Read it again.");
  });

  it("is decided by the folder of the session, if its folder is also a worktree of that one", async () => {
    await answer({ type: "not-ours" });
    await answer({ type: "refused", message: "Read it again." }, ["/main", directory]);
    assert.equal(await begin(), "Read it again.");
  });

  it("is not held up by a daemon that does not answer, does not know the request, or does not exist", async () => {
    assert.equal(await begin(), undefined);
    const silent = await serve("");
    assert.equal(await begin(50), undefined);
    silent.close();
    await serve("HTTP/1.1 404 Not Found\r\n\r\n");
    assert.equal(await begin(), undefined);
  });
});
