import assert from "node:assert/strict";
import type { FrameLocator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTask } from "../support/seeded-tasks.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const FILLER = "Nothing to see in this line.\n\n".repeat(200);

function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  if (title) return { text: "A title" };
  const prompt = lastUserText(messages);
  if (prompt === "Fix the lexer")
    return {
      text: `The lexer swallowed the newline.\n\n${FILLER}Now the $(zap) lexer keeps what it swallowed: the **newline**.\n\n${FILLER}`,
    };
  return { text: `Done: ${prompt}` };
}

describe("searching all outputs in a real editor", function () {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let frame: FrameLocator;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    server = await start.server({ model });
    const parentSessionID = await createSession(server, "A day");
    await seedTask(server, { parentSessionID, description: "Fix the lexer", prompt: "Fix the lexer" });
    await seedTask(server, { parentSessionID, description: "Test the parser", prompt: "Swallow no errors" });
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "never" },
      shows: (opened) => opened.row("Finished Today, 2").waitFor(),
    });
    frame = workbench.webviewFrame();
  });

  const found = (text: string) => workbench.quickInput.items.filter({ hasText: text });

  it("lists the lines with the text and their tasks while it is typed, the newest tasks first", async () => {
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Search All Outputs");
    await quickInput.type("swallow");
    await found("Done: Swallow no errors").waitFor();
    await found("The lexer swallowed the newline.").waitFor();
    assert.deepEqual(
      (await quickInput.items.allInnerTexts()).map((row) => row.replace(/\s*\n\s*/g, " | ").trim()),
      [
        "Test the parser | Done: Swallow no errors",
        "Test the parser | Swallow no errors",
        "Fix the lexer | Now the $(zap) lexer keeps what it swallowed: the **newline**.",
        "Fix the lexer | The lexer swallowed the newline.",
      ],
    );
    await takeAllPictures(workbench, "search");
  });

  it("opens the output at the line that is picked, with the text in the box for finding", async () => {
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Search All Outputs");
    await quickInput.type("newline");
    await quickInput.choose("lexer keeps what");
    await frame.locator(".find-count", { hasText: "2 of 2" }).waitFor();
    assert.equal(await frame.getByRole("textbox", { name: "Find in output" }).inputValue(), "newline");
    await frame.getByText("keeps what").first().waitFor();
    await takeAllPictures(workbench, "search-opened");
  });

  it("lists nothing if nothing is found", async () => {
    await workbench.runCommand("Async Agents: Search All Outputs");
    await workbench.quickInput.type("nowhere to be found");
    await workbench.page.getByText("Search All Outputs: No Results").waitFor();
    assert.equal(await workbench.quickInput.items.count(), 0);
  });
});
