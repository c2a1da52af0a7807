import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import type { MirroredRequest, MirroredSession } from "../../../src/engine/folder-changes.ts";
import type { Browser, Page } from "playwright-core";

import { ShownConversation } from "../../../src/daemon/conversation/shown-conversation.ts";
import { Emitter } from "../../../src/engine/event.ts";
import type { OpenRequest } from "../../../src/engine/requests.ts";
import { messageOf } from "../../../src/engine/errors.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { TaskChange } from "../../../src/engine/registry.ts";
import type { Child } from "../../../src/engine/subagent.ts";
import type { Task } from "../../../src/engine/task.ts";
import type { Transcript } from "../../../src/engine/transcript.ts";
import { lastAnswer } from "../../../src/engine/turn.ts";
import type { ConnectionView, FoundAt, PageMessage } from "../../../src/protocol/output.ts";
import { outputPage } from "../../../src/ui/output/html.ts";
import type { OutputEditor, OutputParts } from "../../../src/ui/output/output-parts.ts";
import { OutputSession } from "../../../src/ui/output/output-session.ts";
import { fakeTask } from "./fake-task.ts";
import { THEMES, type Theme, type ThemeName } from "./themes.ts";

/** Stands in for the localized texts of the extension. */
export const WORDING: Pick<OutputEditor, "asker" | "translate"> = {
  asker: ({ agent, description }) => `${agent} of "${description}"`,
  translate: english,
};

/** The task that continues the one shown. */
export const NEXT_ID = "ses_0123456789abcdefghijkNx1";

const ORIGIN = "http://panel.test";
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The panel's script and style sheet, as served by the extension. */
export interface PanelBundle {
  readonly script: string;
  readonly style: string;
}

export async function buildPanel(): Promise<PanelBundle> {
  const [page, style] = await Promise.all([
    build({
      entryPoints: [`${ROOT}src/webview/main.ts`],
      bundle: true,
      minify: true,
      format: "esm",
      target: "chrome122",
      write: false,
    }),
    readFile(`${ROOT}media/output.css`, "utf8"),
  ]);
  return { script: page.outputFiles[0]!.text, style };
}

export interface PanelOptions {
  readonly theme?: ThemeName;
  readonly width?: number;
  readonly height?: number;
  readonly connection?: ConnectionView;
  /** The folder that the agent works in. */
  readonly folder?: string;
  /** The state that the editor kept from an earlier page. */
  readonly state?: unknown;
  readonly task: Child | undefined;
  /** Other existing tasks and subagents. */
  readonly others?: readonly Child[];
  /** The task's session. */
  readonly session?: MirroredSession;
  readonly requests?: readonly OpenRequest<MirroredRequest>[];
  readonly explainRequest?: OutputParts["known"]["explainRequest"];
  readonly image?: OutputParts["known"]["image"];
  readonly transcript: () => Promise<Transcript>;
  readonly steer?: (...call: Parameters<OutputParts["tasks"]["steer"]>) => Promise<void>;
  readonly withdraw?: () => Promise<string>;
  readonly resume?: (taskID: string, prompt: string) => Promise<void>;
  /** Resolves to the new task, if there is one. */
  readonly retry?: () => Promise<unknown>;
  /** The final answer of the task. */
  readonly result?: string;
  readonly answer?: OutputParts["tasks"]["answer"];
  readonly openFile?: OutputEditor["openFile"];
}

/** The panel's real page and real host side in a browser, with a stand-in for the editor between them. */
export class PanelPage {
  /** Actions that the page requested, with their arguments. */
  readonly calls: unknown[][] = [];
  /** Requests of the page for anything but its own files. */
  readonly strayRequests: string[] = [];
  readonly pageErrors: string[] = [];
  task: Child | undefined;
  connection: ConnectionView;
  private requests: readonly OpenRequest<MirroredRequest>[];
  private readonly taskChanges = new Emitter<TaskChange>(rethrow);
  private readonly requestChanges = new Emitter<void>(rethrow);
  private readonly connectionChanges = new Emitter<void>(rethrow);
  private readonly session: OutputSession;

  private constructor(
    readonly page: Page,
    options: PanelOptions,
  ) {
    this.task = options.task;
    this.connection = options.connection ?? "connected";
    this.requests = options.requests ?? [];
    const note =
      (name: string) =>
      (...values: unknown[]): void =>
        void this.calls.push([name, ...values]);
    const id = options.task?.id ?? "ses_gone";
    const parts: OutputParts = {
      known: {
        child: (each) => (each === id ? this.task : options.others?.find((other) => other.id === each)),
        session: () => options.session,
        children: () => [this.task, ...(options.others ?? [])].filter((each) => each !== undefined),
        openConversation: async (id, send) =>
          new ShownConversation(
            await options.transcript(),
            () => ({
              child: id === this.session.taskID ? this.task : undefined,
              folder: options.folder ?? "",
            }),
            send,
          ),
        lastAnswer: async () => lastAnswer((await options.transcript()).messages),
        onDidChange: this.taskChanges.event,
        onDidChangeSubagent: () => ({ dispose: () => undefined }),
        openRequests: () => this.requests,
        onDidChangeRequests: this.requestChanges.event,
        explainRequest: options.explainRequest ?? (() => Promise.resolve(undefined)),
        image: options.image ?? (() => new Promise(() => undefined)),
      },
      tasks: {
        resume: async (taskID, prompt) => {
          await (options.resume ?? note("resume"))(taskID, prompt);
          return this.task as Task;
        },
        steer: async (taskID, message, how) => {
          await (options.steer ?? note("steer"))(taskID, message, how);
          return this.task as Task;
        },
        withdraw: options.withdraw ?? (() => Promise.resolve("")),
        continue: async (taskID, prompt) => {
          note("continue")(taskID, prompt);
          return fakeTask({ id: NEXT_ID });
        },
        answer: options.answer ?? ((request, answer) => Promise.resolve(note("answer")(request.id, answer))),
        output: () => Promise.resolve({ task: this.task as Task, result: options.result }),
      },
      logger: { debug: () => undefined, info: () => undefined, warn: note("warn"), error: note("error") },
    };
    // Messages are delivered one after the other, as by the editor.
    let queue: Promise<unknown> = Promise.resolve();
    this.session = new OutputSession(id, parts, {
      translations: {},
      ...WORDING,
      folder: () => options.folder,
      connection: () => this.connection,
      onDidChangeConnection: this.connectionChanges.event,
      post: (message) => {
        queue = queue
          .then(() => page.evaluate((data) => window.postMessage(data, "*"), message))
          .catch(() => undefined);
      },
      showInTab: () => undefined,
      keep: note("keep"),
      run: (command) => {
        if (command === "retry" && options.retry) return options.retry();
        note(command)(id);
        return Promise.resolve(id);
      },
      openDocument: note("openDocument"),
      openFile: options.openFile ?? ((...values) => Promise.resolve(note("openFile")(...values))),
      openExternal: note("openExternal"),
      openSession: note("openSession"),
      copyText: note("copyText"),
      offerText: note("offerText"),
      describe: (error) => `${messageOf(error)} Try again.`,
    });
  }

  static async open(browser: Browser, bundle: PanelBundle, options: PanelOptions): Promise<PanelPage> {
    const theme = THEMES[options.theme ?? "dark"];
    const page = await browser.newPage({
      viewport: { width: options.width ?? 900, height: options.height ?? 760 },
      reducedMotion: "reduce",
    });
    const panel = new PanelPage(page, options);
    page.on("pageerror", (error) => panel.pageErrors.push(String(error)));
    await page.route("**/*", (route) => {
      const url = route.request().url();
      if (url === `${ORIGIN}/`) {
        const body = outputPage({
          taskID: panel.session.taskID,
          title: "Output",
          loading: "Loading…",
          language: "en",
          scriptUri: `${ORIGIN}/webview.js`,
          styleUri: `${ORIGIN}/output.css`,
          cspSource: ORIGIN,
          nonce: "bm9uY2U=",
        });
        return route.fulfill({ contentType: "text/html", body });
      }
      if (url === `${ORIGIN}/away`) return route.fulfill({ contentType: "text/html", body: "" });
      if (url === `${ORIGIN}/webview.js`)
        return route.fulfill({ contentType: "text/javascript", body: bundle.script });
      if (url === `${ORIGIN}/output.css`)
        return route.fulfill({ contentType: "text/css", body: bundle.style });
      panel.strayRequests.push(url);
      return route.abort();
    });
    await page.exposeFunction("toHost", ({ message }: PageMessage) => panel.session.receive(message));
    await page.addInitScript({ content: editorStandIn(theme, options.state) });
    await page.goto(`${ORIGIN}/`);
    return panel;
  }

  /** Simulates a switch to another tab: the editor discards the page, and loads it again when the user returns. */
  async leave(): Promise<void> {
    this.session.pause();
    await this.page.goto(`${ORIGIN}/away`);
  }

  /** Loads the page again, with the state that the editor kept. */
  async comeBack(): Promise<void> {
    await this.page.goto(`${ORIGIN}/`);
  }

  /** Runs the command for finding text, or shows a match. */
  find(at?: FoundAt): void {
    this.session.find(at);
  }

  /**
   * Holds the page's next request for earlier messages until `ask()` is called in the page.
   * @param when whether in the page as it is, or once it is loaded again
   */
  async holdNextPage(when: "now" | "loaded" = "now"): Promise<void> {
    const hold = (): void => {
      const { requestIdleCallback: later } = window;
      window.requestIdleCallback = (ask) => {
        window.requestIdleCallback = later;
        Object.assign(window, { ask });
        return 0;
      };
    };
    await (when === "now" ? this.page.evaluate(hold) : this.page.addInitScript(hold));
  }

  /** Hands the page the state of another one of its task. */
  takeOver(state: unknown): void {
    this.session.takeOver(state);
  }

  setTask(task: Child | undefined): void {
    const before = this.task as Task | undefined;
    this.task = task;
    this.taskChanges.fire({ id: this.session.taskID, before, after: task as Task | undefined });
  }

  setRequests(requests: readonly OpenRequest<MirroredRequest>[]): void {
    this.requests = requests;
    this.requestChanges.fire();
  }

  setConnection(connection: ConnectionView): void {
    this.connection = connection;
    this.connectionChanges.fire();
  }

  async close(): Promise<void> {
    this.session.dispose();
    await this.page.close();
  }
}

/** Provides the editor's API and theme to the page. A string, because it runs in the browser. */
export function editorStandIn(theme: Theme, state: unknown): string {
  return `{
    const { variables, bodyClass } = ${JSON.stringify(theme)};
    const kept = sessionStorage.getItem("state");
    window.keptState = kept ? JSON.parse(kept) : ${JSON.stringify(state) ?? "undefined"};
    window.acquireVsCodeApi = () => ({
      postMessage: (message) => void window.toHost(message),
      getState: () => window.keptState,
      setState: (state) => {
        window.keptState = state;
        sessionStorage.setItem("state", JSON.stringify(state));
      },
    });
    document.addEventListener("DOMContentLoaded", () => {
      for (const [name, value] of Object.entries(variables))
        document.documentElement.style.setProperty("--vscode-" + name, value);
      document.body.className = bodyClass;
    });
  }`;
}

function rethrow(error: unknown): never {
  throw error;
}
