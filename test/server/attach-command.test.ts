import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { attachCommand } from "../../src/opencode/attach-command.ts";
import { OpenCodeConnection } from "../../src/opencode/connection.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import { english } from "../../src/engine/sentence.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import { noOwnServers } from "../support/engine.ts";
import { tempDir } from "../support/temp.ts";
import { failureOf, fakeOpenCode2, realClock, silentLogger } from "./desk.ts";

describe("the command that opens a session in a terminal", () => {
  const password = "a b'c";
  let server: OpenCodeServer;
  let connection: OpenCodeConnection;
  /** The setting for OpenCode's executable. */
  let path: string;

  before(async () => {
    server = await startOpenCode({ password });
    path = server.binary;
    connection = new OpenCodeConnection({
      directory: server.directory,
      settings: () => ({ url: server.url, path, startTimeoutMs: 1_000 }),
      password: async () => password,
      ownServers: noOwnServers,
      env: {},
      events: new ServerEvents(realClock),
      clock: realClock,
      logger: silentLogger,
    });
  });
  after(async () => {
    connection?.dispose();
    await server?.stop();
  });

  it("is refused while not connected", async () => {
    assert.equal((await failureOf(connection.attachCommand("ses_1"))).code, "unreachable");
  });

  it("names server, session and folder, and passes the password only in the environment", async () => {
    await connection.connect();
    const { url, directory, binary: executable } = server;
    assert.deepEqual(await connection.attachCommand("ses_1"), {
      executable,
      args: ["attach", url, "--session", "ses_1", "--dir", directory],
      directory,
      env: { OPENCODE_SERVER_USERNAME: "opencode", OPENCODE_SERVER_PASSWORD: password },
    });
  });

  it("names the worktree in which an isolated task works", async () => {
    const directory = realpathSync(tempDir("worktree"));
    const { id } = await connection.server.createSession({ title: "A task", directory });
    const { args, directory: started } = await connection.attachCommand(id);
    assert.deepEqual([args.at(-1), started], [directory, directory]);
  });

  it("is refused if OpenCode's executable is missing, and names the setting", async () => {
    path = "/nowhere/opencode";
    const { code, remedy } = await failureOf(connection.attachCommand("ses_1"));
    assert.equal(code, "bad-path");
    assert.match(english(remedy), /asyncagents\.server\.path/);
  });

  it("is refused if the executable is an OpenCode that isn't supported", async () => {
    path = fakeOpenCode2;
    assert.equal((await failureOf(connection.attachCommand("ses_1"))).code, "too-new");
  });

  it("removes another server's password from the environment if this server needs none", () => {
    const access = { url: "http://127.0.0.1:4096", username: "opencode" };
    const { env } = attachCommand("/bin/opencode", access, "/work", "ses_1");
    assert.equal(env["OPENCODE_SERVER_PASSWORD"], null);
  });
});
