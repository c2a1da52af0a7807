/**
 * What the packaged extension adds to the startup of a window, compared to an extension that does nothing, as measured
 * by VS Code itself. Also checks that it starts no process and opens no network connection while its view is hidden.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { installBeside } from "../ui/support/extension.ts";
import { startWorkbench } from "../ui/support/workbench.ts";
import { activationTime, ourName, tallViewport } from "./support/editor.ts";
import { median } from "./support/measure.ts";
import { Report } from "./support/report.ts";

/** Many, because what we add differs from one window to the next by more than the budget. */
const WINDOWS = 15;
const PROBE_FILE = "ACTIVATION_PROBE_FILE";

/** Records what is started in the extension host, which all extensions share. */
const probe = `
const { subscribe } = require("node:diagnostics_channel");
const { appendFileSync } = require("node:fs");
exports.activate = () => {
  Error.stackTraceLimit = 50;
  const note = (what, { stack }) =>
    appendFileSync(process.env.${PROBE_FILE}, JSON.stringify({ what, stack }) + "\\n");
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
const started: string[] = [];
for (let count = 0; count < WINDOWS; count++) await openWindow();

const report = new Report("activation");
report.figures("empty extension", "ms", empty);
report.figures("this extension", "ms", ours);
const beyond = ours.map((time, window) => time - (empty[window] ?? NaN));
report.figures("this extension - empty", "ms", beyond);
report.budget({ what: "this extension - empty", value: median(beyond), limit: 20, unit: "ms" });
report.budget({ what: "processes and connections", value: started.length, limit: 0, unit: "" });
report.finish();
for (const each of started) console.log(each);

async function openWindow(): Promise<void> {
  const file = join(tempDir("probe"), "started.jsonl");
  const workbench = await startWorkbench({
    env: { ...hermeticEnv(hermeticHome()), [PROBE_FILE]: file },
    settings: { "asyncagents.server.path": openCodeBinary() },
    viewport: tallViewport,
  });
  try {
    ours.push(await activationTime(workbench, ourName));
    empty.push(await activationTime(workbench, /empty-extension/));
    const isStart = ({ what, stack }: Note): boolean => what === "process" && isOurs(stack);
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

interface Note {
  readonly what: string;
  /** The stack trace of the start. */
  readonly stack: string;
}

/** None before the first of them: nothing has made the file yet. */
function readNotes(file: string): readonly Note[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Note);
}

function isOurs(stack: string): boolean {
  return stack.includes("async-agents.opencode-async-agents");
}
