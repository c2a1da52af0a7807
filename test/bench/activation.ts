/**
 * What the packaged extension adds to the startup of a window, compared to an extension that does nothing: the time to
 * load its code and to call its `activate()`. The times that VS Code shows also include what other extensions do in
 * between. Also checks that it starts no process and opens no network connection while its view is hidden.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { installBeside } from "../ui/support/extension.ts";
import { startWorkbench } from "../ui/support/workbench.ts";
import { median } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const WINDOWS = 9;
/** When a window has opened for certain, in milliseconds after its extensions were activated. */
const SETTLE_MS = 3_000;
const PROBE_FILE = "ACTIVATION_PROBE_FILE";
const OURS = "async-agents.opencode-async-agents";
const EMPTY = "bench.empty-extension";

/**
 * Records how long both take to be activated and ours to open its window, and what is started in the extension host, which
 * all extensions share.
 */
const probe = `
const { subscribe } = require("node:diagnostics_channel");
const { appendFileSync } = require("node:fs");
const Module = require("node:module");
const { isAbsolute } = require("node:path");
const record = (note) => appendFileSync(process.env.${PROBE_FILE}, JSON.stringify(note) + "\\n");
const load = Module._load;
Module._load = function (request, ...others) {
  const begun = performance.now();
  const loaded = load.call(this, request, ...others);
  const loading = performance.now() - begun;
  if (/\\/window-\\w+\\.cjs$/.test(request)) {
    const openWindow = (start) => {
      const called = performance.now();
      const parts = loaded.openWindow(start);
      record({ what: "opened", extension: "the window", time: loading + performance.now() - called });
      return parts;
    };
    return { ...loaded, openWindow };
  }
  const extension = isAbsolute(request) && ["${OURS}", "${EMPTY}"].find((id) => request.includes("/" + id + "-"));
  if (!extension) return loaded;
  const activate = (context) => {
    const called = performance.now();
    const api = loaded.activate(context);
    record({ what: "activated", extension, time: loading + performance.now() - called });
    return api;
  };
  return { ...loaded, activate };
};
exports.activate = () => {
  Error.stackTraceLimit = 50;
  const note = (what, { stack }) => record({ what, stack });
  subscribe("child_process", () => note("process", new Error()));
  subscribe("net.client.socket", ({ socket }) => {
    const from = new Error();
    socket.on("connectionAttempt", (address, port) =>
      note(port === undefined ? "local socket" : "connection to " + address + ":" + port, from));
  });
};`;

installBeside({ name: "activation-probe", activationEvent: "*", source: probe });
installBeside({
  name: "empty-extension",
  activationEvent: "onStartupFinished",
  source: "exports.activate = () => {};",
});

const ours: number[] = [];
const empty: number[] = [];
const afterwards: number[] = [];
const started: string[] = [];
for (let count = 0; count < WINDOWS; count++) await openWindow();

const report = new Report("activation");
report.figures("empty extension", "ms", empty);
report.figures("this extension", "ms", ours);
const beyond = ours.map((time, window) => time - (empty[window] ?? NaN));
report.figures("this extension - empty", "ms", beyond);
report.figures("this extension, in the next turn", "ms", afterwards);
report.budget({ what: "this extension - empty", value: median(beyond), limit: 20, unit: "ms" });
report.budget({ what: "processes and connections", value: started.length, limit: 0, unit: "" });
report.finish();
for (const each of started) console.log(each);

async function openWindow(): Promise<void> {
  const file = join(tempDir("probe"), "started.jsonl");
  const workbench = await startWorkbench({
    env: { ...hermeticEnv(hermeticHome()), [PROBE_FILE]: file },
    settings: { "asyncagents.server.path": openCodeBinary() },
  });
  try {
    ours.push(await activationTime(file, OURS));
    empty.push(await activationTime(file, EMPTY));
    afterwards.push(await activationTime(file, "the window"));
    await delay(SETTLE_MS);
    const isStart = ({ what, stack = "" }: Note): boolean => what === "process" && stack.includes(OURS);
    for (const note of readNotes(file))
      // A connection by `fetch` has no stack trace of its caller, so every network connection counts.
      if (note.what.startsWith("connection") || isStart(note)) started.push(`${note.what}\n${note.stack}`);
    // Opening the view starts the daemon. Seeing that proves that the probe works.
    await workbench.openView();
    await until("the start of the daemon", () => readNotes(file).some(isStart), 30_000);
  } finally {
    await workbench.stop();
  }
}

/** Milliseconds to load the code and to call its function, once that has happened. */
function activationTime(file: string, extension: string): Promise<number> {
  const activated = (): Note | undefined => readNotes(file).find((note) => note.extension === extension);
  return until(`${extension} to be there`, () => activated()?.time, 60_000);
}

interface Note {
  readonly what: string;
  /** What was activated or opened. */
  readonly extension?: string;
  readonly time?: number;
  /** The stack trace of what was started. */
  readonly stack?: string;
}

/** None before the first of them: nothing has made the file yet. */
function readNotes(file: string): readonly Note[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Note);
}
