import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
  hermeticEnv,
  hermeticHome,
  modelConfig,
  openCodeBinary,
  startOpenCode,
} from "../support/opencode.ts";
import { defaultStateFolder } from "../../src/state/state-folder.ts";
import { fakeServer } from "../server/desk.ts";
import { startStranger } from "../support/stranger.ts";
import { tempDir } from "../support/temp.ts";
import { startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { takePictures, systemTheme } from "../ui/support/pictures.ts";
import { until } from "../support/wait.ts";
import { startWorkbench, type Workbench, type WorkbenchOptions } from "../ui/support/workbench.ts";

/** What the view shows when it has no tasks, for each cause, with the button for the remedy. */
describe("what the empty view shows", () => {
  let model: ScriptedModel;
  let workbench: Workbench;

  before(async () => {
    model = await startScriptedModel();
  });

  after(async () => {
    await model.stop();
  });

  /** A window in which no OpenCode is installed, unless the options say otherwise. */
  async function open(options: WorkbenchOptions = {}): Promise<Workbench> {
    workbench = await startWorkbench({
      fewBuiltIns: true,
      env: withoutOpenCode(),
      ...options,
      settings: { ...systemTheme, ...options.settings },
    });
    await workbench.openView();
    return workbench;
  }

  const withoutOpenCode = (home = hermeticHome()): NodeJS.ProcessEnv => ({
    ...hermeticEnv(home, modelConfig(model)),
    PATH: pathWithoutOpenCode(),
  });

  /** Waits until the view shows this, and takes a picture. */
  async function says(text: string | RegExp, picture: string, ...buttons: readonly string[]): Promise<void> {
    const welcome = workbench.page.locator(".welcome-view", { hasText: text });
    await welcome.waitFor();
    for (const name of buttons) await welcome.getByRole("button", { name }).waitFor();
    await takePictures(workbench, picture);
  }

  describe("in a window whose settings change", () => {
    before(async () => {
      await open({ env: { ...withoutOpenCode(), FAKE_SERVER: "silent" } });
    });

    afterEach(async function () {
      await workbench.recordFailure(this.currentTest);
    });

    after(() => workbench.stop());

    /** Sets how the server is found, and nothing else about it. */
    const find = (server: { url?: string; path?: string }): Promise<void> =>
      workbench.changeSettings({
        "asyncagents.server.url": server.url,
        "asyncagents.server.path": server.path,
      });

    it("OpenCode missing, then set in the settings: the view connects by itself", async () => {
      await says("OpenCode wasn't found", "welcome-not-found", "Set Up OpenCode");
      await find({ path: openCodeBinary() });
      await workbench.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
    });

    it("an address other than loopback is never contacted", async () => {
      // An address that leads here anyway, so that the test sees any connection.
      const stranger = await startStranger();
      try {
        await find({ url: stranger.url.replace("127.0.0.1", "0.0.0.0") });
        await says("The configured address can't be used", "welcome-bad-url", "Change the Address");
        assert.deepEqual(stranger.received, []);
      } finally {
        stranger.close();
      }
    });

    it("a slow start can be cancelled from the view", async () => {
      await find({ path: fakeServer });
      const starting = workbench.page.getByText("Starting OpenCode…");
      await starting.waitFor();
      await workbench.screenshot("connecting-dark");
      await workbench.page.getByRole("button", { name: "Stop OpenCode" }).click();
      await workbench.page.locator(".welcome-view", { hasText: "Not connected" }).waitFor();
      await starting.waitFor({ state: "detached" });
    });
  });

  describe("in a window of its own", () => {
    afterEach(async function () {
      await workbench.recordFailure(this.currentTest);
      await workbench.stop();
    });

    it("an address and a program in a trusted folder's settings: neither is used", async () => {
      const folder = tempDir("work");
      const stranger = await startStranger();
      const mark = join(tempDir("mark"), "was-run");
      const program = join(folder, "opencode");
      writeFileSync(program, `#!/bin/sh\ntouch '${mark}'\n`, { mode: 0o755 });
      mkdirSync(join(folder, ".vscode"));
      const setFolder = (settings: Record<string, string>): void =>
        writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify(settings));
      setFolder({ "asyncagents.server.url": stranger.url, "asyncagents.server.path": program });
      const env = { ...withoutOpenCode(), OPENCODE_SERVER_PASSWORD: "secret" };
      try {
        const opened = await open({ folder, env });
        const notFound = opened.page.locator(".welcome-view", { hasText: "OpenCode wasn't found" });
        await until(
          "the view",
          async () => stranger.received.length > 0 || (await notFound.isVisible()),
          60_000,
        );
        assert.deepEqual(stranger.received, []);
        assert.equal(existsSync(mark), false);
      } finally {
        stranger.close();
      }
    });

    it("a server that requires a password: the view asks for it, and connects", async () => {
      const folder = tempDir("work");
      const server = await startOpenCode({ model, directory: folder, password: "open sesame" });
      try {
        const opened = await open({ folder, settings: { "asyncagents.server.url": server.url } });
        await says("requires a password", "welcome-wrong-password", "Enter Password");
        await opened.page.locator(".welcome-view").getByRole("button", { name: "Enter Password" }).click();
        await opened.quickInput.shows("Password of the OpenCode Server");
        await opened.quickInput.enter("open sesame");
        await opened.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
      } finally {
        await server.stop();
      }
    });

    it("an untrusted folder, with a very long name: nothing is started until it is trusted", async () => {
      const folder = join(tempDir("work"), `${"a very long name ".repeat(10)}ü`);
      mkdirSync(folder);
      writeFileSync(join(folder, "readme.txt"), "nothing");
      const home = hermeticHome();
      const env = withoutOpenCode(home);
      const settings = { "asyncagents.server.path": openCodeBinary() };
      const opened = await open({ folder, env, trust: false, settings });
      await says("until you trust this folder", "welcome-untrusted", "Manage Workspace Trust");
      assert.deepEqual(backgroundProcesses(home), []);
      assert.deepEqual(logs(home), []);
      const trustedAt = Date.now();
      await opened.trustFolder();
      await opened.openView();
      await opened.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
      // The first starts left their logs; so would starts before the trust.
      const names = logs(home).map((log) => basename(log).replace(/-.+/, ""));
      assert.deepEqual(names.sort(), ["daemon.log", "server"]);
      for (const log of logs(home)) assert.ok(statSync(log).birthtimeMs >= trustedAt);
      assert.ok(backgroundProcesses(home).length > 0);
    });

    it("no folder open", async () => {
      await open({ folder: null, settings: { "asyncagents.server.path": openCodeBinary() } });
      await says("Background agents work in a folder", "welcome-no-folder", "Open Folder");
    });
  });
});

/** Prevents the machine's own OpenCode from being found. */
function pathWithoutOpenCode(): string {
  return (process.env["PATH"] ?? "")
    .split(":")
    .filter((folder) => !folder.includes("node_modules"))
    .join(":");
}

/** The command lines of the daemon and the OpenCode servers that run in this home. */
function backgroundProcesses(home: string): string[] {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && read(pid, "environ").includes(`HOME=${home}\0`))
    .map((pid) => read(pid, "cmdline").replaceAll("\0", " "))
    .filter((command) => /daemon\.cjs| serve /.test(command));
}

/** The log files of the daemon and the servers. */
function logs(home: string): string[] {
  const folder = defaultStateFolder({ platform: "linux", env: hermeticEnv(home), home });
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".log"))
    .map((file) => join(folder, file));
}
