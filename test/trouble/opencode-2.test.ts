import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defaultStateFolder } from "../../src/state/state-folder.ts";
import { fakeOpenCode2 } from "../server/desk.ts";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "../support/opencode.ts";
import { startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { systemTheme, takePictures } from "../ui/support/pictures.ts";
import { startWorkbench, type Workbench, type WorkbenchOptions } from "../ui/support/workbench.ts";

/** What users meet whose `opencode` is that of version 2. */
describe("where OpenCode 2 is installed", () => {
  let model: ScriptedModel;
  let workbench: Workbench;
  let home: string;

  before(async () => {
    model = await startScriptedModel();
  });

  after(() => model.stop());

  /** A window with these programs on PATH, each as `opencode`. */
  async function open(programs: readonly string[], options: WorkbenchOptions = {}): Promise<void> {
    home = hermeticHome();
    const path = [...programs.map(installed), pathWithoutOpenCode()].join(":");
    // The editor takes PATH from a login shell.
    writeFileSync(join(home, ".profile"), `PATH='${path}'\n`);
    workbench = await startWorkbench({
      env: hermeticEnv(home, modelConfig(model)),
      ...options,
      settings: {
        ...systemTheme,
        // Terminals are then rendered as text in the page.
        "terminal.integrated.gpuAcceleration": "off",
        ...options.settings,
      },
    });
    await workbench.openView();
  }

  const welcome = (text: string) => workbench.page.locator(".welcome-view", { hasText: text });
  const isReady = () => welcome("No background tasks").waitFor();

  const stateFolder = () => defaultStateFolder({ platform: process.platform, env: hermeticEnv(home), home });

  async function setUpOpenCode1(): Promise<void> {
    await welcome("OpenCode 2 is installed").getByRole("button", { name: "Set Up OpenCode 1" }).click();
    await workbench.quickInput.shows("OpenCode 2.3.2 is installed, but Async Agents works with OpenCode 1");
  }

  describe("with both versions", () => {
    before(() => open([fakeOpenCode2, openCodeBinary()]));

    afterEach(async function () {
      await workbench.recordFailure(this.currentTest);
    });

    after(() => workbench.stop());

    it("[OC2-2] with version 1 second on PATH, a task runs without a question", async () => {
      await isReady();
      await workbench.runCommand("Async Agents: Launch Task");
      await workbench.quickInput.choose("general");
      await workbench.quickInput.shows("Enter a prompt.");
      await workbench.quickInput.enter("Say hello.");
      const completed = workbench.page.locator('[aria-label*="completed"]');
      await workbench.treeItem("Say hello").and(completed).waitFor();
    });

    it("[OC2-4] one notification offers a database of the extension's own, which has no tasks yet, and is used if the user agrees", async () => {
      const offer = workbench.notification("shares its database");
      await workbench.showNotifications();
      await offer.getByRole("button", { name: "Learn More" }).waitFor();
      await takePictures(workbench, "own-database");
      const database = join(stateFolder(), "opencode.db");
      assert.equal(existsSync(database), false);
      await offer.getByRole("button", { name: "Use Own Database" }).click();
      await until("the database", () => existsSync(database), 60_000);
      // It has no tasks.
      await isReady();

      await workbench.changeSettings({ "asyncagents.server.ownDatabase": false });
      // The tasks of the shared one are back, also in the next window.
      await workbench.treeItem("Say hello").waitFor();
      await workbench.reload();
      await workbench.openView();
      await workbench.treeItem("Say hello").waitFor();
      assert.equal(await offer.count(), 0);
    });
  });

  describe("in a window of its own", () => {
    afterEach(async function () {
      await workbench.recordFailure(this.currentTest);
      await workbench.stop();
    });

    it("[OC2-1] the empty view says so, explains the difference, and leads to an OpenCode 1 next to it", async () => {
      await open([fakeOpenCode2]);
      await welcome("OpenCode 2 is installed").waitFor();
      await takePictures(workbench, "welcome-too-new");
      await welcome("OpenCode 2 is installed").locator("a", { hasText: "Learn more" }).click();
      await workbench.webviewFrame().getByText("Tested versions").waitFor();
      await takePictures(workbench, "opencode-2-difference");
      await setUpOpenCode1();
      for (const way of [
        "Copy Install Command",
        "Select Executable",
        "What Is the Difference?",
        "Search Again",
      ])
        await workbench.quickInput.items.filter({ hasText: way }).waitFor();
      await takePictures(workbench, "set-up-opencode-1");

      await workbench.quickInput.choose("Install OpenCode 1 in a Terminal");
      const terminal = workbench.page.locator(".terminal-wrapper .xterm-rows");
      const folder = join(stateFolder(), "opencode-1");
      // The terminal breaks long lines.
      await terminal.filter({ hasText: /npm install --prefix/ }).waitFor();
      const told = workbench.notification("Press Enter in the terminal");
      await told.waitFor();
      await takePictures(workbench, "set-up-opencode-1-install");
      const [place, rest] = [`npminstall--prefix"${folder}"`, "--ignore-scriptsopencode-ai@1.18.33"];
      const written = async (): Promise<string> => (await terminal.innerText()).replaceAll(/\s/g, "");
      await until("the command", async () => (await written()).includes(place + rest));
      // A shell that is still starting shows the command before its prompt, then behind it, where it may break the line as if
      // it had begun there, and write over its first part.
      await until("the command at the prompt", async () =>
        /[#$%]npminstall--prefix"[^$#%]*$/.test(await written()),
      );
      assert.ok((await written()).endsWith(rest));

      // As the package manager does.
      const bin = join(folder, "node_modules", `opencode-${process.platform}-${process.arch}`, "bin");
      mkdirSync(bin, { recursive: true });
      symlinkSync(openCodeBinary(), join(bin, "opencode"));
      await workbench.showNotifications();
      await told.getByRole("button", { name: "Search Again" }).click();
      const connected = workbench.notification("is connected:");
      await connected.filter({ hasText: bin }).waitFor();
      await isReady();
      assert.ok((await written()).endsWith(rest), "The command was run.");
    });

    it("[OC2-3] a server of version 2 at the configured address is named, and the address can be changed", async () => {
      const program = spawn(process.execPath, [fakeOpenCode2, "serve", "--port", "0"], {
        env: { OPENCODE_PASSWORD: "secret" },
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        const [output] = (await once(program.stdout, "data")) as [Buffer];
        const url = /http:\/\/(\S+)/.exec(output.toString())?.[1] ?? assert.fail();
        await open([], { settings: { "asyncagents.server.url": `http://opencode:secret@${url}` } });
        const view = welcome("The server at the configured address is OpenCode 2");
        await view.getByRole("button", { name: "Change the Address" }).waitFor();
        await takePictures(workbench, "welcome-server-too-new");
      } finally {
        program.kill();
      }
    });
  });
});

/** A folder for PATH in which this program is `opencode`. */
function installed(program: string): string {
  const folder = tempDir("bin");
  symlinkSync(program, join(folder, "opencode"));
  return folder;
}

/** Prevents the machine's own OpenCode from being found; the fake one needs Node. */
function pathWithoutOpenCode(): string {
  const folders = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  return [...folders, dirname(process.execPath)].join(":");
}
