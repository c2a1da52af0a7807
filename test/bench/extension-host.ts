/**
 * How much CPU the extension host uses for 20 tasks that stream text, with no panel open. Compares the packaged
 * extension with the one from the last commit in which each window had its own engine, each minus a window whose folder
 * is idle.
 */
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { repository } from "../support/extension-host.ts";
import { createSession } from "../support/engine.ts";
import { hermeticEnv, hermeticHome, startOpenCode } from "../support/opencode.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { installedExtension } from "../ui/support/extension.ts";
import { startWorkbench, type Workbench } from "../ui/support/workbench.ts";
import { installVsix } from "../vscode/host.ts";
import { median, ratios } from "./support/measure.ts";
import { cpuTime } from "./support/processes.ts";
import { Report } from "./support/report.ts";

/** The last commit without a daemon. */
const BEFORE = "937fa9c";
const TASKS = 20;
const DELTAS = 2_000;
/** Streams one after the other in each round: an idle window's CPU time alone varies from round to round. */
const STREAMS = 5;
/** The time after which delayed updates have arrived, in milliseconds. */
const SETTLE_MS = 3_000;
const ROUNDS = 5;

const model = await startScriptedModel();
const server = await startOpenCode({ model, password: null });
const parentSessionID = await createSession(server, "Parent");
const windows = [
  await openWindow(installedExtension()),
  await openWindow(installBefore()),
  await openWindow(installedExtension(), tempDir("empty")),
];
for (const window of windows.slice(0, 2)) await showTasks(window);

await measure(-1);
const ours: number[] = [];
const before: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const used = await measure(round);
  ours.push(used.ours);
  before.push(used.before);
}
for (const window of windows) await window.stop();
await server.stop();
await model.stop();

const ratio = ratios(ours, before);
const report = new Report("extension-host");
report.figures("extension host's CPU", "ms", ours);
report.figures(`extension host's CPU, ${BEFORE}`, "ms", before);
report.figures(`now / ${BEFORE}`, "×", ratio);
report.budget({ what: `now / ${BEFORE}`, value: median(ratio), limit: 0.1, unit: "×" });
report.finish();

/** The additional CPU time in milliseconds, compared to the idle window, while all models stream their text. */
async function measure(round: number): Promise<{ readonly ours: number; readonly before: number }> {
  const [go, end] = [`go ${round}`, `end ${round}`];
  const tools = [{ name: "glob", args: { pattern: "*" } }];
  const streams = Array.from({ length: STREAMS }, () => ({ text: "Now.", chunks: DELTAS, tools }));
  const [first, ...others] = streams;
  const prompt = script([{ ...first, gate: go }, ...others, { text: "Done.", gate: end }]);
  const task = { description: "Write", parentSessionID, prompt, launchedBy: "person" } as const;
  const ids = await seedTasks(
    server,
    Array.from({ length: TASKS }, () => task),
  );
  const asked = (id: string, count: number): Promise<unknown> =>
    until(
      "the model's turn",
      () => model.requests.filter(({ sessionID }) => sessionID === id).length === count,
      120_000,
    );
  for (const id of ids) await asked(id, 1);
  await delay(SETTLE_MS);
  const begun = windows.map(hostTime);
  model.release(go);
  for (const id of ids) await asked(id, STREAMS + 1);
  await delay(SETTLE_MS);
  const [our = NaN, other = NaN, none = NaN] = windows.map(
    (window, at) => hostTime(window) - (begun[at] ?? NaN),
  );
  model.release(end);
  await until(
    "the ends",
    async () => Object.keys((await (await server.fetch("/session/status")).json()) as object).length === 0,
    60_000,
  );
  return { ours: our - none, before: other - none };
}

function hostTime({ server: editor }: Workbench): number {
  const [host] = editor.extensionHosts();
  if (host === undefined) throw new Error("The extension host is gone.");
  return cpuTime(host);
}

/** Opens a window of a separate user. */
async function openWindow(extensions: string, folder = server.directory): Promise<Workbench> {
  const home = hermeticHome();
  return startWorkbench({
    env: { ...hermeticEnv(home), HOME: home },
    folder,
    settings: {
      "asyncagents.server.url": server.url,
      "asyncagents.notifyParent": false,
      "asyncagents.notifyUser": "never",
    },
    extensions,
  });
}

async function showTasks(workbench: Workbench): Promise<void> {
  await workbench.openView();
  await workbench.page
    .locator(".welcome-view", { hasText: "No background tasks" })
    .waitFor({ timeout: 60_000 });
}

/** Packages and installs the extension of {@link BEFORE}. Resolves to the extensions directory. */
function installBefore(): string {
  const source = tempDir("before");
  execFileSync("bash", ["-c", `git archive ${BEFORE} | tar -x -C '${source}'`], { cwd: repository });
  symlinkSync(join(repository, "node_modules"), join(source, "node_modules"));
  const vsix = join(tempDir("vsix"), "before.vsix");
  execFileSync("npm", ["run", "package", "--", "--out", vsix], {
    cwd: source,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const extensionsDirectory = tempDir("extensions");
  installVsix(vsix, { userDirectory: tempDir("data"), extensionsDirectory });
  return extensionsDirectory;
}
