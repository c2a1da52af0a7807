/**
 * What a newcomer does with sixty tasks in a real editor: launches one, opens its answer, writes a follow-up by keyboard,
 * lets eight end together, and looks for the one that failed. `BENCH_EARLIER` names the package of an earlier version,
 * which is used in the same way in the same run.
 */
import type { Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import { hermeticEnv, hermeticHome, startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  startScriptedModel,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTask, seedTasks } from "../support/seeded-tasks.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { installedExtension } from "../ui/support/extension.ts";
import { startWorkbench, type Workbench } from "../ui/support/workbench.ts";
import { installVsix } from "../vscode/host.ts";
import { median, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const ROUNDS = 5;
const MINUTE = 60_000;
/** With the eight and the one that is launched, there are sixty. */
const ENDED = 51;
/** The prompts of the eight that end together: seven complete, one fails. */
const COMPLETE = ["Lexer", "Parser", "Printer", "Checker", "Server", "Formatter", "Page"];
const FAILS = "Refused";
const FOLLOW_UP = "Follow-up prompt";
/** More presses than this count as "can't be reached". */
const MOST_PRESSES = 30;

interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly limit?: number;
}

const FIGURES = {
  launch: { what: "launched until it has a row", unit: "ms", limit: 300 },
  answer: { what: "row clicked until its answer is shown", unit: "ms", limit: 1_000 },
  presses: { what: "keys from a row to the follow-up", unit: "", limit: 4 },
  followUp: { what: "row opened by key until the follow-up is typed", unit: "ms" },
  notifications: { what: "notifications of eight ends", unit: "", limit: 2 },
  failed: { what: "actions from sixty tasks to the failed one", unit: "", limit: 2 },
} as const satisfies Record<string, Figure>;

type Figures = Record<keyof typeof FIGURES, number>;

const earlier = process.env["BENCH_EARLIER"];
const versions = new Map([["", installedExtension()]]);
if (earlier) {
  const extensionsDirectory = tempDir("ext");
  installVsix(earlier, { userDirectory: tempDir("data"), extensionsDirectory });
  versions.set("earlier: ", extensionsDirectory);
}

const rounds = new Map<string, Figures[]>([...versions.keys()].map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++)
  for (const [name, extensions] of versions) rounds.get(name)?.push(await run(extensions));

const report = new Report("newcomer");
for (const [version, figures] of rounds)
  for (const [name, figure] of Object.entries<Figure>(FIGURES)) {
    const values = figures.map((each) => each[name as keyof Figures]);
    report.figures(version + figure.what, figure.unit, values);
    if (version === "" && figure.limit !== undefined)
      report.budget({ ...figure, limit: figure.limit, value: median(values) });
  }
report.finish();

function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  const prompt = lastUserText(messages);
  if (prompt === FAILS && !title)
    return { status: 401, body: { error: { message: "The key was refused." } } };
  return { text: `Answer: ${prompt}`, ...(COMPLETE.includes(prompt) && { gate: "eight" }) };
}

async function run(extensions: string): Promise<Figures> {
  const model = await startScriptedModel({ fallback: answer });
  const server = await startOpenCode({ model, password: null });
  const parentSessionID = await createSession(server, "A day's work");
  const now = Date.now();
  await seedTasks(
    server,
    Array.from({ length: ENDED }, (_, at) => ({
      parentSessionID,
      description: `Task ${at}`,
      launchedBy: "person",
      createdAt: now - (ENDED - at) * MINUTE,
      startedAt: now - (ENDED - at) * MINUTE,
      endedAt: now - (ENDED - at - 1) * MINUTE,
    })),
  );
  const workbench = await startWorkbench({
    extensions,
    folder: server.directory,
    env: hermeticEnv(hermeticHome()),
    settings: { "asyncagents.server.url": server.url, "asyncagents.maxConcurrentTasks": 0 },
  });
  try {
    await workbench.openView();
    await workbench.row(`Task ${ENDED - 1}, `).waitFor({ timeout: MINUTE });
    const launched = await launch(workbench, "Docs");
    const opened = await openAnswer(workbench, "Docs");
    const { presses, followUp } = await writeFollowUp(workbench, "Docs");
    const notifications = await endEight(workbench, { model, server, parentSessionID });
    const failed = await findFailed(workbench);
    return { launch: launched, answer: opened, presses, followUp, notifications, failed };
  } finally {
    await workbench.stop();
    await server.stop();
    await model.stop();
  }
}

/** Milliseconds in the page, from Enter in the box to the frame with a row. */
async function launch(workbench: Workbench, prompt: string): Promise<number> {
  const { page, quickInput } = workbench;
  await workbench.runCommand("Async Agents: Launch Task");
  await quickInput.choose("general");
  await quickInput.shows("Prompt for general");
  await quickInput.type(prompt);
  const measured = page.evaluate(
    `new Promise((resolve) => {
      document.addEventListener("keydown", () => {
        const start = performance.now();
        const look = () => {
          const rows = [...document.querySelectorAll('.part.sidebar [role="treeitem"]')];
          if (rows.some((row) => row.ariaLabel?.startsWith(${JSON.stringify(prompt)})))
            resolve(performance.now() - start);
          else requestAnimationFrame(look);
        };
        look();
      }, { capture: true, once: true });
    })`,
  );
  await quickInput.accept();
  return (await measured) as number;
}

async function openAnswer(workbench: Workbench, prompt: string): Promise<number> {
  const row = workbench.row(`${prompt}, completed`);
  await workbench.hoverRow(row);
  return await timed(async () => {
    await row.click();
    await showsAnswer(workbench, prompt);
  });
}

async function showsAnswer(workbench: Workbench, prompt: string): Promise<void> {
  await workbench.webviewFrame().getByText(`Answer: ${prompt}`).waitFor();
}

/** From a row with the focus, by keyboard alone, while the output of the task below it is open. */
async function writeFollowUp(
  workbench: Workbench,
  prompt: string,
): Promise<{ readonly presses: number; readonly followUp: number }> {
  const other = `Task ${ENDED - 1}`;
  await workbench.clickRow(workbench.row(other));
  await workbench.tab(other).waitFor();
  await focusList(workbench);
  await workbench.press("ArrowUp");
  await focusedRow(workbench).and(workbench.row(prompt)).waitFor();
  let presses = 1;
  const followUp = await timed(async () => {
    await workbench.press("Enter");
    await showsAnswer(workbench, prompt);
    for (let at = await focused(workbench); at !== FOLLOW_UP && presses < MOST_PRESSES; presses++) {
      await workbench.press("Tab");
      const before = at;
      await until("Tab to move the focus", async () => (at = await focused(workbench)) !== before);
    }
    await workbench.press("Y");
    const box = workbench.webviewFrame().getByRole("textbox", { name: FOLLOW_UP });
    await until("the text in the box", async () => (await box.inputValue()) === "Y");
  });
  return { presses, followUp };
}

/** What has the focus, in the window or in an editor's page: its name, or else what it is. */
function focused({ page }: Workbench): Promise<string> {
  return page.evaluate(() => {
    let at = document.activeElement;
    for (let inner; (inner = (at as HTMLIFrameElement | null)?.contentDocument?.activeElement);) at = inner;
    return at?.ariaLabel ?? `${at?.tagName} ${at?.className}`;
  });
}

interface Place {
  readonly model: ScriptedModel;
  readonly server: OpenCodeServer;
  readonly parentSessionID: string;
}

/** Seven tasks complete and one fails, while the user looks elsewhere; it was the first one to start. */
async function endEight(workbench: Workbench, { model, server, parentSessionID }: Place): Promise<number> {
  const { page } = workbench;
  await workbench.runCommand("View: Close All Editors");
  await workbench.runCommand("View: Show Explorer");
  await workbench.runCommand("Notifications: Clear All Notifications");
  const early = Date.now() - ENDED * MINUTE;
  const times = { createdAt: early, startedAt: early };
  for (const prompt of COMPLETE)
    await seedTask(server, { parentSessionID, description: prompt, prompt, launchedBy: "person" });
  for (const prompt of COMPLETE)
    await model.waitForRequest(({ messages }) => lastUserText(messages) === prompt);
  await workbench.statusBarItem(/\b7\b/).waitFor();
  await seedTask(server, {
    parentSessionID,
    description: FAILS,
    prompt: FAILS,
    launchedBy: "person",
    ...times,
  });
  await model.waitForRequest(({ messages, title }) => !title && lastUserText(messages) === FAILS);
  model.release("eight");
  await workbench.showNotifications();
  const rows = page.locator(".notifications-center .monaco-list-row");
  let shown = 0;
  await until(
    "eight ends to be reported",
    async () => {
      shown = Number((await rows.count()) && (await rows.first().getAttribute("aria-setsize")));
      // One that reports several begins with their number.
      const texts = await rows.locator(".notification-list-item-message").allInnerTexts();
      const further = texts.map((text) => Number(/^\d+(?= tasks)/.exec(text.trim())?.[0] ?? 1) - 1);
      return further.reduce((sum, each) => sum + each, shown) === COMPLETE.length + 1;
    },
    MINUTE,
  );
  await workbench.runCommand("Notifications: Clear All Notifications");
  return shown;
}

/** Presses of PageDown in the list, and the click on the row. */
async function findFailed(workbench: Workbench): Promise<number> {
  await focusList(workbench);
  const row = workbench.row(`${FAILS}, failed`);
  const current = focusedRow(workbench);
  let actions = 1;
  for (; !(await row.isVisible()); actions++) {
    const before = (await current.count()) && (await current.getAttribute("aria-label"));
    await workbench.press("PageDown");
    await until("the next page", async () => (await current.getAttribute("aria-label")) !== before);
  }
  await row.click();
  await workbench.webviewFrame().getByText("The key was refused.").first().waitFor();
  return actions;
}

function focusedRow({ page }: Workbench): Locator {
  return page.locator(".part.sidebar .monaco-list-row.focused");
}

async function focusList(workbench: Workbench): Promise<void> {
  await workbench.pressAfterCtrlK("a", "v");
  await workbench.page.locator(".part.sidebar .monaco-list:focus").waitFor();
  await workbench.treeItems.first().waitFor();
}
