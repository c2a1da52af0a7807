import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

/** The model's answer to each prompt. */
const ANSWERS: Readonly<Record<string, ScriptStep>> = {
  "Search them": { text: "Three places call **load**: `src/a.ts`, `src/b.ts` and `src/c.ts`." },
  "Mend them": { text: "All three are mended." },
  "Write notes": { text: "The notes are written." },
  "Read the log": { text: "The log is clean." },
  "Count them": { status: 401, body: { error: { message: "The key was refused" } } },
  "Look around": { text: "Nothing is left to do.", gate: "look" },
};

function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  if (prompt !== "Delegate") return ANSWERS[prompt] ?? { text: "Done." };
  if (messages.at(-1)?.role === "tool") return { text: "The helper is back." };
  const args = { description: "Look around", prompt: "Look around", subagent_type: "general" };
  return { tools: [{ name: "task", args }] };
}

describe("adopting subagents that others launched, in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let parent: string;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    const folder = tempDir("work");
    server = await start.server({ model, directory: folder });
    parent = await createSession(server, "Improve the parser");
    for (const [title, prompt] of [
      ["Search the callers", "Search them"],
      ["Write the notes", "Write notes"],
      ["Look into the log", "Read the log"],
      ["Count the files", "Count them"],
    ] as const)
      await ask(await createBelow(title), "general", prompt);
    await ask(parent, "build", "Delegate");
    await model.waitForRequest(({ step }) => step.gate === "look");
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.notifyUser": "never",
      },
      shows: (opened) => opened.row("Look around, running, general, OpenCode").waitFor(),
    });
  });

  const post = (path: string, body: unknown): Promise<Response> =>
    server.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  /** A child session of the parent, as the terminal creates one. */
  async function createBelow(title: string): Promise<string> {
    const made = await post("/session", { parentID: parent, title, agent: "general" });
    return ((await made.json()) as { id: string }).id;
  }

  /** Sends a prompt; resolves when the turn has ended, or for the agent `build` when the prompt is accepted. */
  const ask = (id: string, agent: string, text: string): Promise<Response> =>
    post(`/session/${id}/${agent === "build" ? "prompt_async" : "message"}`, {
      agent,
      parts: [{ type: "text", text }],
    });

  /** The row with this name for screen readers. */
  const row = (name: string): Locator => workbench.row(name);
  const inPanel = (role: "button" | "textbox" | "heading", name?: string): Locator =>
    workbench.webviewFrame().getByRole(role, { ...(name !== undefined && { name, exact: true }) });
  const entries = (target: Locator): Promise<readonly string[]> => workbench.menuEntries(target);

  async function show(name: string): Promise<void> {
    await workbench.clickRow(row(name));
    await inPanel("heading", name).waitFor();
  }

  async function pictures(name: string): Promise<void> {
    await takePictures(workbench, name);
    await takeHighContrastPicture(workbench, name);
  }

  it("a click on a subagent's row opens its conversation, and its panel offers what can be done", async () => {
    await show("Search the callers");
    await workbench.webviewFrame().getByText("OpenCode subagent").waitFor();
    await workbench.webviewFrame().getByText("Three places call").waitFor();
    for (const name of ["Adopt", "Fork", "Show Changes", "Copy Result", "Open in Terminal"])
      await inPanel("button", name).waitFor();
    await inPanel("button", "Adopt and Resume").waitFor();
    await pictures("adopt-panel");
  });

  it("the menu of a subagent offers what works without adopting it, and adopting it", async () => {
    assert.deepEqual(await entries(row("Write the notes")), [
      "Show Output",
      "Show Changes",
      "Open in Terminal",
      "Resume Task…",
      "Fork Conversation…",
      "Adopt Subagent",
      "Copy Result",
      "Copy Task ID",
    ]);
    assert.deepEqual(await entries(row("Look around")), [
      "Show Output",
      "Show Changes",
      "Open in Terminal",
      "Fork Conversation…",
      "Cancel Task or Batch",
      "Adopt Subagent",
      "Copy Task ID",
    ]);
  });

  it("a follow-up in its panel adopts and resumes it in one step", async () => {
    await inPanel("textbox").fill("Mend them");
    await inPanel("textbox").press("Enter");
    await workbench.webviewFrame().getByText("All three are mended.").waitFor();
    await row("Search the callers, completed, (resumed), general").waitFor();
    await until("the badge", async () => (await workbench.badges(row("Search the callers"))).join() === "R");
    await inPanel("button", "Resume").waitFor();
    assert.equal(await inPanel("button", "Adopt").count(), 0);
    await pictures("adopt-resumed");
  });

  it("resuming a subagent from its menu says that this adopts it; Escape changes nothing", async () => {
    await workbench.contextMenu(row("Write the notes"), "Resume Task…");
    await workbench.quickInput.shows("Adopt and Resume: Write the notes");
    await workbench.quickInput.shows("The subagent becomes your task");
    await takePictures(workbench, "adopt-resume-box");
    await workbench.quickInput.cancel();
    await row("Write the notes, idle, general, OpenCode").waitFor();
  });

  it("several rows are adopted at once, cleared, and restored", async () => {
    const [first, last] = [row("Write the notes"), row("Look into the log")];
    await workbench.clickRow(first);
    // When it opens, the panel closes an open menu.
    await workbench.tab("Write the notes").waitFor();
    await workbench.hoverRow(last);
    await last.click({ modifiers: ["Control"] });
    assert.deepEqual(await entries(first), ["Adopt Subagent", "Copy Result", "Copy Task ID"]);
    await workbench.contextMenu(first, "Adopt Subagent");
    await workbench.notification("2 subagents are now your tasks.").waitFor();
    await row("Write the notes, completed, general").waitFor();
    await row("Look into the log, completed, general").waitFor();
    await workbench.contextMenu(first, "Clear from Task List");
    await until("the rows to go", async () => (await first.count()) + (await last.count()) === 0);
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await workbench.notification("Cleared 2 tasks").getByRole("button", { name: "Undo" }).click();
    await Promise.all([first.waitFor(), last.waitFor()]);
  });
});
