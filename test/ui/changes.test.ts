import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { hermeticHome } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { faintTexts } from "./support/contrast.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const SESSIONS = `import { db } from "./db.js";

/** The session of a token. */
export async function session(token) {
  const rows = await db.all("select * from sessions");
  return rows.find((row) => row.token === token);
}

export async function end(token) {
  await db.run("delete from sessions where token = ?", token);
}
`;
const ONE_ROW = `  return db.one("select * from sessions where token = ?", token);`;
const LONG = "Make the lookup faster";
const MIGRATION = "create unique index sessions_token on sessions (token);\n";

describe("changes and terminals in a real editor", () => {
  const folder = tempDir("work");
  const home = hermeticHome();
  const at = (name: string): string => join(folder, name);
  let model: ScriptedModel;
  let workbench: Workbench;

  /** The model's steps for the prompts below. */
  function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
    const prompt = lastUserText(messages);
    const taken = messages.filter(({ role }) => role === "assistant").length;
    const steps: readonly ScriptStep[] = prompt.includes("faster")
      ? [
          { tools: [{ name: "read", args: { filePath: at("src/sessions.js") } }] },
          {
            tools: [
              {
                name: "edit",
                args: {
                  filePath: at("src/sessions.js"),
                  oldString: SESSIONS.split("\n").slice(4, 6).join("\n"),
                  newString: ONE_ROW,
                },
              },
              { name: "write", args: { filePath: at("migrations/2.sql"), content: MIGRATION } },
            ],
          },
          {
            tools: [
              {
                name: "bash",
                args: {
                  command: "rm src/cache.js; printf '\\0\\1' > media.bin",
                  description: "Remove what is not needed",
                },
              },
            ],
          },
          { text: "The lookup of the walrus session reads one row now." },
        ]
      : [];
    return steps[taken] ?? { text: "Done." };
  }

  setUp(async (start) => {
    for (const [name, content] of Object.entries({
      "src/sessions.js": SESSIONS,
      "src/cache.js": "export const cache = new Map();\n",
    })) {
      mkdirSync(join(at(name), ".."), { recursive: true });
      writeFileSync(at(name), content);
    }
    execFileSync("git", ["init", "--quiet"], { cwd: folder });
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      folder,
      model,
      home,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
        "git.enabled": false,
        // Rendered as text, not on a canvas.
        "terminal.integrated.gpuAcceleration": "off",
      },
    });
    await launch(LONG);
    await ended(LONG);
  });

  async function launch(prompt: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(prompt);
    await workbench.treeItem(prompt).waitFor();
  }

  async function ended(prompt: string): Promise<void> {
    const row = workbench.treeItem(prompt);
    // The first request takes longer, because the server has just started.
    const isCompleted = async () => /completed/.test((await row.getAttribute("aria-label")) ?? "");
    await until("its end", isCompleted, 120_000);
  }

  const multiDiff = (): Locator => workbench.page.locator(".multiDiffEditor");
  const terminal = (): Locator => workbench.page.locator(".terminal-wrapper.active .xterm");

  /** The rows of the active terminal. */
  const terminalText = async (): Promise<string> =>
    (await terminal().locator(".xterm-rows").allInnerTexts()).join("\n");

  /** Waits for the task's answer, which OpenCode's interface shows once it has loaded. */
  async function showsConversation(): Promise<void> {
    await until("the conversation", async () => (await terminalText()).includes("walrus"), 60_000);
  }

  /** The processes of `opencode attach` in the workbench's terminals. */
  const attached = (): readonly { args: readonly string[]; env: readonly string[] }[] =>
    readdirSync("/proc")
      .filter((pid) => /^\d+$/.test(pid))
      .flatMap((pid) => {
        try {
          const [args, env] = ["cmdline", "environ"].map((file) =>
            readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0"),
          );
          return args?.includes("attach") && env?.includes(`HOME=${home}`) ? [{ args, env }] : [];
        } catch {
          return [];
        }
      });

  it("shows a task's changed files as one multi-file diff", async () => {
    await workbench.contextMenu(workbench.treeItem(LONG), "Show Changes");
    await workbench.tab(`Changes: ${LONG}`).waitFor();
    for (const name of ["2.sql", "media.bin", "cache.js", "sessions.js"])
      await multiDiff().locator(".file-path", { hasText: name }).first().waitFor();
    await multiDiff().getByText("create unique index").first().waitFor();
    await takePictures(workbench, "changes");
  });

  it("shows them again after a reload of the window", async () => {
    await workbench.reload();
    await multiDiff().locator(".view-line", { hasText: "create unique index" }).waitFor();
    for (const former of ['select * from sessions");', "export const cache"])
      await multiDiff().locator(".editor.original .view-line", { hasText: former }).waitFor();
  });

  it("lets the user edit a file that is still as the task left it", async () => {
    const line = multiDiff().locator(".editor.modified .view-line", { hasText: "return db.one" }).first();
    await line.click();
    await workbench.page.keyboard.press("End");
    await workbench.page.keyboard.type(" // fast");
    await workbench.page.keyboard.press("Control+S");
    await until("the file to be saved", () =>
      readFileSync(at("src/sessions.js"), "utf8").includes("// fast"),
    );
    await multiDiff().locator(".editor.original").first().click();
    await workbench.page.keyboard.type("x");
    await workbench.page.locator(".monaco-editor-overlaymessage", { hasText: "read-only" }).waitFor();
    await workbench.page.keyboard.press("Escape");
  });

  it("opens a task in a terminal, in OpenCode's own interface, and only once", async () => {
    await workbench.contextMenu(workbench.treeItem(LONG), "Open in Terminal");
    await terminal().waitFor();
    await showsConversation();
    await workbench.screenshot("terminal-dark");
    await workbench.runCommand("View: Hide Panel");
    await terminal().waitFor({ state: "hidden" });
    await workbench.contextMenu(workbench.treeItem(LONG), "Open in Terminal");
    await terminal().waitFor();
    assert.equal(await workbench.page.locator(".terminal-wrapper").count(), 1);
  });

  it("puts no password in the arguments of the terminal's process", () => {
    const [process] = attached();
    assert.ok(process);
    const name = "OPENCODE_SERVER_PASSWORD=";
    const password = process.env.find((variable) => variable.startsWith(name))?.slice(name.length);
    assert.ok(password);
    assert.ok(!process.args.some((arg) => arg.includes(password)));
  });

  it("opens another terminal once the first one was closed", async () => {
    await workbench.runCommand("Terminal: Kill the Active Terminal Instance");
    await workbench.page.locator(".terminal-wrapper").waitFor({ state: "detached" });
    await until("the end of its process", () => attached().length === 0);
    await workbench.contextMenu(workbench.treeItem(LONG), "Open in Terminal");
    await until("a new process", () => attached().length === 1);
  });

  it("shows a terminal that is readable in high contrast", async () => {
    await showsConversation();
    await takeHighContrastPicture(workbench, "terminal", async () => {
      // OpenCode draws lines beside the texts.
      const faint = await faintTexts(terminal().locator(".xterm-rows"), 4.5);
      assert.deepEqual(
        faint.filter((text) => /\p{L}/u.test(text)),
        [],
      );
    });
  });
});
