import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import type { PageMessage } from "../../../src/protocol/output.ts";
import type { OverviewMessage, OverviewTask } from "../../../src/protocol/overview.ts";
import { outputPage } from "../../../src/ui/output/html.ts";
import { NOW } from "./fake-task.ts";
import { editorStandIn } from "./panel-page.ts";
import { THEMES, type ThemeName } from "./themes.ts";

const ORIGIN = "http://overview.test";
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TYPES: Readonly<Record<string, string>> = { js: "text/javascript", css: "text/css" };

export const HOUR = 3_600_000;
export const MINUTE = 60_000;

/** The start of the day of the fake tasks. */
export const DAY_START = NOW - 9.5 * HOUR;

/** A task of the overview that has completed, unless its facts say otherwise. */
export function laneTask(id: string, facts: Partial<OverviewTask> = {}): OverviewTask {
  return {
    id,
    parentID: "ses_parent",
    description: `Task ${id}`,
    status: "completed",
    createdAt: NOW - 30 * MINUTE,
    startedAt: NOW - 30 * MINUTE,
    endedAt: NOW - 20 * MINUTE,
    hasUnknownTurns: false,
    cost: 0.05,
    tokens: 12_000,
    ...facts,
  };
}

export interface OverviewOptions {
  readonly theme?: ThemeName;
  readonly width?: number;
  readonly height?: number;
  /** The state that the editor kept from an earlier page. */
  readonly state?: unknown;
}

/** The files of the overview's page, by their names. */
export async function buildOverview(): Promise<Readonly<Record<string, string>>> {
  const [page, overview, output] = await Promise.all([
    build({
      entryPoints: [`${ROOT}src/webview/overview.ts`],
      bundle: true,
      format: "esm",
      target: "chrome122",
      write: false,
    }),
    readFile(`${ROOT}media/overview.css`, "utf8"),
    readFile(`${ROOT}media/output.css`, "utf8"),
  ]);
  return { "overview.js": page.outputFiles[0]!.text, "overview.css": overview, "output.css": output };
}

/** The overview's real page in a browser, with a stand-in for the editor; time passes only when the test says so. */
export class OverviewTestPage {
  readonly messages: unknown[] = [];
  readonly pageErrors: string[] = [];
  readonly strayRequests: string[] = [];

  private constructor(readonly page: Page) {}

  static async open(
    browser: Browser,
    files: Readonly<Record<string, string>>,
    { theme = "dark", width = 1000, height = 700, state }: OverviewOptions = {},
  ): Promise<OverviewTestPage> {
    const page = await browser.newPage({ viewport: { width, height }, reducedMotion: "reduce" });
    const opened = new OverviewTestPage(page);
    page.on("pageerror", (error) => opened.pageErrors.push(String(error)));
    await page.clock.install({ time: NOW - HOUR });
    await page.clock.pauseAt(NOW);
    await page.route("**/*", (route) => {
      const name = route
        .request()
        .url()
        .slice(ORIGIN.length + 1);
      if (name === "") return route.fulfill({ contentType: "text/html", body: html() });
      const body = files[name];
      if (body !== undefined)
        return route.fulfill({ contentType: TYPES[name.split(".").at(-1) ?? ""] ?? "", body });
      opened.strayRequests.push(name);
      return route.abort();
    });
    await page.exposeFunction("toHost", ({ message }: PageMessage) => opened.messages.push(message));
    await page.addInitScript({ content: editorStandIn(THEMES[theme], state) });
    await page.goto(`${ORIGIN}/`);
    await opened.post({ type: "setup", translations: {}, now: NOW });
    return opened;
  }

  async show(
    tasks: readonly OverviewTask[],
    connection: "connected" | "connecting" | "disconnected" = "connected",
    dayStart = DAY_START,
  ): Promise<void> {
    await this.post({ type: "tasks", connection, dayStart, tasks });
  }

  close(): Promise<void> {
    return this.page.close();
  }

  private async post(message: OverviewMessage): Promise<void> {
    // Resolves once the page has taken it in.
    await this.page.evaluate(
      (data) =>
        new Promise<void>((resolve) => {
          window.addEventListener("message", () => resolve(), { once: true });
          window.postMessage(data, "*");
        }),
      message,
    );
  }
}

function html(): string {
  return outputPage({
    taskID: "",
    title: "Task Overview",
    loading: "Loading…",
    language: "en",
    scriptUri: `${ORIGIN}/overview.js`,
    styleUri: `${ORIGIN}/overview.css`,
    cspSource: ORIGIN,
    nonce: "bm9uY2U=",
  });
}
