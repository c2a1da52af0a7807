import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import {
  hermeticEnv,
  hermeticHome,
  modelConfig,
  openCodeBinary,
  startOpenCode,
} from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { takePictures, systemTheme } from "../ui/support/pictures.ts";
import { startWorkbench, type Workbench, type WorkbenchOptions } from "../ui/support/workbench.ts";

/** What the view says when it has no tasks to show, for each cause; and that the remedy is there. */
describe("what the empty view says", () => {
  let model: ScriptedModel;
  let workbench: Workbench | undefined;

  before(async () => {
    model = await startScriptedModel();
  });

  afterEach(async function () {
    await workbench?.recordFailure(this.currentTest);
    await workbench?.stop();
    workbench = undefined;
  });

  after(async () => {
    await model.stop();
  });

  /** A window in which no OpenCode is installed, unless the options say otherwise. */
  async function open(options: WorkbenchOptions = {}): Promise<Workbench> {
    const env = { ...hermeticEnv(hermeticHome(), modelConfig(model)), PATH: pathWithoutOpenCode() };
    workbench = await startWorkbench({ env, ...options, settings: { ...systemTheme, ...options.settings } });
    await workbench.openView();
    return workbench;
  }

  /** Waits until the view says this, and takes a picture. */
  async function says(text: string | RegExp, picture: string, ...buttons: readonly string[]): Promise<void> {
    assert.ok(workbench);
    const welcome = workbench.page.locator(".welcome-view", { hasText: text });
    await welcome.waitFor({ timeout: 60_000 });
    for (const name of buttons) await welcome.getByRole("button", { name }).waitFor();
    await takePictures(workbench, picture);
  }

  it("no OpenCode on this machine: where to get it, and how to say where it is", async () => {
    await open();
    await says("OpenCode was not found", "welcome-not-found", "Set Up OpenCode");
  });

  it("OpenCode missing, and then named in the settings: the view connects by itself", async () => {
    const opened = await open();
    await says("OpenCode was not found", "welcome-not-found", "Set Up OpenCode");
    await opened.changeSettings({ "asyncagents.server.path": openCodeBinary() });
    await opened.page
      .locator(".welcome-view", { hasText: "No background tasks" })
      .waitFor({ timeout: 60_000 });
  });

  it("a path that names nothing that can be run", async () => {
    await open({ settings: { "asyncagents.server.path": "/no/such/opencode" } });
    await says("does not name an OpenCode that can be run", "welcome-bad-path", "Correct the Path");
  });

  it("an address at which something else answers", async () => {
    const other = createServer((_, response) => response.end("<html>not me</html>"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    try {
      await open({ settings: { "asyncagents.server.url": `http://127.0.0.1:${port}` } });
      await says("is not OpenCode", "welcome-not-opencode", "Change the Address");
    } finally {
      other.close();
    }
  });

  it("an address at which nothing answers", async () => {
    const once = createServer();
    await new Promise<void>((resolve) => once.listen(0, "127.0.0.1", resolve));
    const { port } = once.address() as AddressInfo;
    await new Promise((resolve) => once.close(resolve));
    await open({ settings: { "asyncagents.server.url": `http://127.0.0.1:${port}` } });
    await says("Nothing answers", "welcome-unreachable", "Try Again");
  });

  it("an address that is not of this machine is never contacted", async () => {
    await open({ settings: { "asyncagents.server.url": "http://192.0.2.1:4096" } });
    await says("must be one of this machine", "welcome-bad-url", "Change the Address");
  });

  it("a server that wants a password: asked for, kept, and the tasks are there", async () => {
    const folder = tempDir("work");
    const server = await startOpenCode({ model, directory: folder, password: "open sesame" });
    try {
      const opened = await open({ folder, settings: { "asyncagents.server.url": server.url } });
      await says("asks for a password", "welcome-wrong-password", "Enter Password");
      await opened.page.locator(".welcome-view").getByRole("button", { name: "Enter Password" }).click();
      await opened.quickInput.shows("Password of the OpenCode Server");
      await opened.quickInput.enter("open sesame");
      await opened.page
        .locator(".welcome-view", { hasText: "No background tasks" })
        .waitFor({ timeout: 30_000 });
    } finally {
      await server.stop();
    }
  });

  it("an untrusted folder: nothing is started before it is trusted", async () => {
    const opened = await open({ trust: false, settings: { "asyncagents.server.path": openCodeBinary() } });
    await says("before you trust this folder", "welcome-untrusted", "Manage Workspace Trust");
    await opened.trustFolder();
    await opened.openView();
    await opened.page
      .locator(".welcome-view", { hasText: "No background tasks" })
      .waitFor({ timeout: 60_000 });
  });

  it("no folder open", async () => {
    await open({ folder: null, settings: { "asyncagents.server.path": openCodeBinary() } });
    await says("Background agents work on a folder", "welcome-no-folder", "Open Folder");
  });

  it("a folder with a very long name and no git in it", async () => {
    const folder = join(tempDir("work"), `${"a very long name ".repeat(10)}ü`);
    mkdirSync(folder);
    writeFileSync(join(folder, "readme.txt"), "nothing");
    const opened = await open({ folder, settings: { "asyncagents.server.path": openCodeBinary() } });
    await opened.page
      .locator(".welcome-view", { hasText: "No background tasks" })
      .waitFor({ timeout: 60_000 });
  });
});

/** The machine's own OpenCode must not be found. */
function pathWithoutOpenCode(): string {
  return (process.env["PATH"] ?? "")
    .split(":")
    .filter((folder) => !folder.includes("node_modules"))
    .join(":");
}
