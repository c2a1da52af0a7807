import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { OpenCodeAgentServer } from "../../src/opencode/agent-server.ts";
import { createClient } from "../../src/opencode/client.ts";
import type { Message } from "../../src/engine/server-model.ts";
import { createSession } from "../support/engine.ts";
import { agent, call, spoken, user } from "../support/histories.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { readReceived } from "../support/received.ts";
import { lastUserText, type ModelRequest, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const TITLE = "Make the login faster";
const QUESTIONS = [
  "Why does the login take so long?",
  "Which of the queries is the slowest one?",
  "Is there an index that it could use?",
  "Where is the session created?",
  "Does the password check block the other requests?",
  "What did the last release change about it?",
  "Who else calls the function that reads the profile?",
  "Can the profile be read later?",
];
const MESSAGES = 3 * QUESTIONS.length;
const ALL_KEPT = `Keeps all ${MESSAGES} messages`;
/** Of 2,000 tokens. */
const SOME_KEPT = `Keeps 11 of ${MESSAGES} messages`;

/** A turn for each question: the agent reads a long file, then answers. */
function conversation(): readonly Message[] {
  const source = "  const row = await db.one(sql`select * from sessions where token = ${token}`);\n";
  return spoken(
    ...QUESTIONS.flatMap((question, at) => [
      user(`u${at}`, question),
      agent(
        `c${at}`,
        { finish: "tools" },
        call(`call_${at}`, {
          input: { filePath: `src/login/step-${at + 1}.ts` },
          output: source.repeat(150),
        }),
      ),
      agent(`a${at}`, {}, `${FINDING} I read step ${at + 1} for that.`),
    ]),
  );
}
const FINDING =
  "It waits for the database in each of its steps, one after the other, though no step needs what the one before it " +
  "found. Most of the time goes into the lookup of the session, which reads the whole table as its column has no index.";

describe("forking in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({
      fallback: ({ messages }) => ({ text: `Done: ${lastUserText(messages).split("\n").at(-1) ?? ""}` }),
    });
    const folder = tempDir("work");
    server = await start.server({ model, directory: folder });
    await seed(server, TITLE, conversation());
    workbench = await start.window({
      server,
      // Notifications would cover parts of the pictures, and notices would lengthen the forked conversation.
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
      },
    });
  });

  const sessionCount = async (): Promise<number> => {
    const sessions = (await (await server.fetch("/session")).json()) as unknown[];
    return sessions.length;
  };

  /** A row of the open list, by its name for screen readers: label, description, detail. */
  const option = (name: string): Locator => workbench.quickInput.widget.getByRole("option", { name });
  /** The row of the review that launches, with these numbers. */
  const launch = (numbers: string): Locator => option(`Launch, ${numbers}`);

  async function askToFork(): Promise<void> {
    await workbench.runCommand("Async Agents: Fork Conversation");
    await workbench.quickInput.items.filter({ hasText: "active session" }).waitFor();
    await workbench.quickInput.accept();
    await workbench.quickInput.shows("Enter a prompt.");
  }

  /** Goes to the review of a fork of the active session. */
  async function reviewFork(prompt: string): Promise<void> {
    await askToFork();
    await workbench.quickInput.enter(prompt);
    await launch(ALL_KEPT).waitFor();
  }

  /** A task's row, once it is marked as forked and has the badge. */
  async function forkedRow(prompt: string, badge = "F"): Promise<Locator> {
    const row = workbench.treeItem(prompt).filter({ hasText: "(forked)" });
    await row.waitFor();
    await until("the badge", async () => (await workbench.badges(row)).some((one) => one.endsWith(badge)));
    await until("its end", async () => /completed/.test((await row.getAttribute("aria-label")) ?? ""));
    return row;
  }

  /** The users' and agents' texts that the model of the task with this prompt received. */
  async function received(prompt: string): Promise<readonly string[]> {
    const isOurs = ({ title, messages }: ModelRequest): boolean =>
      !title && lastUserText(messages).endsWith(prompt);
    const { heard } = readReceived((await model.waitForRequest(isOurs)).messages);
    return heard.flatMap((one) => ("speaker" in one ? [`${one.speaker}: ${one.text}`] : []));
  }

  it("from the palette: the prompt, then what the task inherits from the active session", async () => {
    await askToFork();
    await takePictures(workbench, "fork-prompt");
    await workbench.quickInput.accept();
    await workbench.quickInput.shows("Enter a prompt first.");
    process.kill(server.pid, "SIGSTOP");
    try {
      await workbench.quickInput.enter("Write down what slows the login.");
      await option("Reading the conversation…").waitFor();
      await takePictures(workbench, "fork-reading");
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await launch(ALL_KEPT)
      .filter({ hasText: /about 3,\d00 of 2\d,000 tokens/ })
      .waitFor();
    await option("Token Limit…, 100,000").waitFor();
    await option("Select First Message…, start of the conversation").waitFor();
    await option("Agent…, general").waitFor();
    await takePictures(workbench, "fork-review");
    await workbench.quickInput.cancel();
  });

  it("the text for the agent opens as a read-only document, and the review stays open", async () => {
    await reviewFork("Write down what slows the login.");
    await option("Preview What the Agent Sees").click();
    await workbench.tab(`Fork of ${TITLE}.md`).waitFor();
    await launch(ALL_KEPT).waitFor();
    await workbench.page.locator(".view-line", { hasText: `User: ${QUESTIONS[0]}` }).waitFor();
    await takePictures(workbench, "fork-text");
    await workbench.quickInput.cancel();
    await workbench.page.locator(".view-line", { hasText: "[Tool: read]" }).first().click();
    await workbench.write("x");
    await workbench.page.locator(".part.editor").getByText("Cannot edit in read-only editor").waitFor();
    await workbench.runCommand("View: Close Editor");
  });

  it("limit, first message and agent can be changed, and the numbers follow", async () => {
    const { quickInput } = workbench;
    await reviewFork("Write down what slows the login.");
    await option("Token Limit…").click();
    await workbench.quickInput.shows("Enter the maximum number of tokens");
    await quickInput.enter("1.5");
    await quickInput.shows("Enter a whole number greater than 0.");
    await takePictures(workbench, "fork-limit");
    await quickInput.enter("2,000");
    await launch(`${SOME_KEPT} · about 1,500 of 25,000 tokens · 3 tool results shortened`).waitFor();
    await takePictures(workbench, "fork-review-cut");
    await option("Select First Message…").click();
    await quickInput.shows("Messages before it are omitted.");
    await takePictures(workbench, "fork-start");
    await quickInput.choose(QUESTIONS[6] ?? "");
    await launch("Keeps all 6 messages").waitFor();
    await option(`Select First Message…, ${QUESTIONS[6]}`).waitFor();
    await option("Agent…").click();
    await quickInput.shows("Select an agent");
    await quickInput.choose("build");
    await option("Agent…, build").waitFor();
    await launch("Keeps all 6 messages").waitFor();
    await takePictures(workbench, "fork-review-start");
    await quickInput.cancel();
  });

  it("[EXT-5] the menu of a row offers resume and fork, and both work", async () => {
    const first = "Measure the login";
    const prompt = "Repeat the measurement";
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(`${first}.`);
    const row = workbench.treeItem(first);
    const isCompleted = async () => /completed/.test((await row.getAttribute("aria-label")) ?? "");
    // The first request takes longer, because the server has just started.
    await until("its end", isCompleted, 60_000);
    const entries = await (await workbench.openContextMenu(row)).allInnerTexts();
    assert.deepEqual(
      entries.filter((entry) => entry.endsWith("…")),
      ["Resume Task…", "Fork Conversation…", "Rename Task…"],
    );
    await takePictures(workbench, "fork-menu");
    await workbench.closeMenu();
    await workbench.contextMenu(row, "Resume Task…");
    await workbench.quickInput.shows("Enter a follow-up.");
    await workbench.quickInput.enter("And once more.");
    await row.filter({ hasText: "(resumed)" }).waitFor();
    await until("its end", async () => /completed/.test((await row.getAttribute("aria-label")) ?? ""));

    await workbench.contextMenu(row, "Fork Conversation…");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(`${prompt}.`);
    await launch("Keeps all 4 messages · about").waitFor();
    await launch("Keeps").click();
    const heard = await received(`${prompt}.`);
    assert.deepEqual(heard, [
      `User: ${first}.`,
      `Agent: Done: ${first}.`,
      "User: And once more.",
      "Agent: Done: And once more.",
    ]);
    await forkedRow(prompt);
    await takePictures(workbench, "tree-forked");
  });

  it("[EXT-6] the panel offers resume and fork", async () => {
    await workbench.clickRow(await forkedRow("Repeat the measurement"));
    const frame = workbench.webviewFrame();
    await frame.getByText("Inherited prompt").first().waitFor();
    await takePictures(workbench, "panel-forked");
    await frame.getByRole("button", { name: "Fork" }).click();
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter("Draw the results as a chart.");
    await launch("Keeps all 6 messages").waitFor();
    await launch("Keeps").click();
    await forkedRow("Draw the results");
    await frame.getByPlaceholder("Enter a follow-up…").fill("And as a table.");
    await frame.getByRole("button", { name: "Resume" }).click();
    await frame.getByText("Done: And as a table.").waitFor();
    await forkedRow("Repeat the measurement", "RF");
    await takePictures(workbench, "panel-forked-resumed");
  });

  it("[FRK-1] the whole flow works by keyboard alone; the model of the task gets the kept messages", async () => {
    const { quickInput } = workbench;
    await workbench.press("F1");
    await quickInput.write("Async Agents: Fork Conversation");
    await quickInput.items.filter({ hasText: "Fork Conversation" }).first().waitFor();
    await quickInput.press("Enter");
    await quickInput.items.filter({ hasText: "active session" }).waitFor();
    await quickInput.press("Enter");
    await quickInput.shows("Enter a prompt.");
    await quickInput.write("Sum up");
    await quickInput.press("Enter");
    await launch(ALL_KEPT).waitFor();
    await quickInput.press("Control+Alt+Minus");
    await quickInput.shows("Enter a prompt.");
    await quickInput.write(" the login.");
    await quickInput.press("Enter");
    await launch(ALL_KEPT).waitFor();
    await quickInput.press("ArrowDown", "ArrowDown", "Enter");
    await quickInput.shows("Enter the maximum number of tokens");
    await quickInput.write("2000");
    await quickInput.press("Enter");
    await option("Token Limit…, 2,000").waitFor();
    await launch(SOME_KEPT).waitFor();
    await quickInput.press("Enter");
    const heard = await received("Sum up the login.");
    assert.deepEqual(
      heard.filter((text) => text.startsWith("User:")),
      QUESTIONS.slice(-4).map((question) => `User: ${question}`),
    );
    await forkedRow("Sum up the login.");
  });

  it("an invalid limit is reported in the review, launches nothing, and can be changed", async () => {
    const { quickInput } = workbench;
    await workbench.runCommand("View: Close All Editors");
    await workbench.changeSettings({ "asyncagents.fork.maxTokens": 0 });
    const before = await sessionCount();
    await askToFork();
    await quickInput.enter("Check the login again.");
    const input = quickInput.widget.locator("input");
    const refusal = option("Try Again, The limit fork.maxTokens must be a number greater than 0");
    await refusal.waitFor();
    await takePictures(workbench, "fork-refused");
    assert.equal(await launch("").count(), 0);
    await quickInput.enter("Try Again");
    await until("it to be tried again", async () => (await input.inputValue()) === "");
    await refusal.waitFor();
    assert.equal(await sessionCount(), before);
    await option("Token Limit…").click();
    await workbench.quickInput.shows("Enter the maximum number of tokens");
    await quickInput.enter("100000");
    await launch(ALL_KEPT).waitFor();
    await launch("Keeps").click();
    await forkedRow("Check the login again.");
  });
});

/** Makes a session with this conversation. */
async function seed(server: OpenCodeServer, title: string, messages: readonly Message[]): Promise<void> {
  const { url, directory } = server;
  const client = createClient({ url, username: "opencode", password: undefined }, directory);
  const agents = new OpenCodeAgentServer(
    () => client,
    () => ({ dispose: () => undefined }),
  );
  await agents.writeHistory(await createSession(server, title), messages);
}
