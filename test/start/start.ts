/**
 * `npm start`: VS Code with the extension on a small sample folder. OpenCode is the one on PATH, else the one that
 * came with the development dependencies; where it has no provider, a model with canned answers stands in.
 * `npm start -- --check`: the same without a window, runs one task and says how it went.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { build } from "esbuild";
import { desktopVsCode, repository, runInExtensionHost } from "../support/extension-host.ts";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { endBackground, runsInBackground } from "../support/background.ts";
import { extensionWithOpener, viewOpener } from "../ui/support/extension.ts";
import { startVsCodeServer, writeSettings, type Settings } from "../vscode/host.ts";
import { demoAnswer, demoConfig } from "./demo-model.ts";
import { hasProvider } from "./provider.ts";

/** The folder that the window opens, and its environment. */
interface Stage {
  readonly folder: string;
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string>>;
}

/** A running VS Code. */
interface Window {
  readonly ended: Promise<unknown>;
  stop(): Promise<void>;
}

const folder = join(tempDir("start"), "sample");
cpSync(join(repository, "test", "start", "sample"), folder, { recursive: true });
execFileSync(process.execPath, ["esbuild.config.mjs"], {
  cwd: repository,
  stdio: ["ignore", "ignore", "inherit"],
});

if (process.argv.includes("--check")) await check();
else await open();

async function check(): Promise<void> {
  const model = await startScriptedModel({ fallback: demoAnswer });
  const tests = join(repository, "out", "test", "start", "check.cjs");
  try {
    await build({
      entryPoints: [join(repository, "test", "start", "check.ts")],
      outfile: tests,
      bundle: true,
      platform: "node",
      format: "cjs",
      target: "node20",
      external: ["vscode"],
      logLevel: "warning",
    });
    const settings = { "asyncagents.server.path": openCodeBinary() };
    const env = hermeticEnv(hermeticHome(), demoConfig(model.url));
    await runInExtensionHost({ tests, folder, settings, env });
  } catch (error) {
    console.error(`The check failed: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  } finally {
    await model.stop();
  }
}

async function open(): Promise<void> {
  const interrupted = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  const openCode = installed("opencode");
  const settings = openCode ? {} : { "asyncagents.server.path": openCodeBinary() };
  const stage: Stage = { folder, settings, env: hasProvider() ? {} : await demoEnvironment() };
  const background = [stage.env["HOME"] ?? homedir(), { ...process.env, ...stage.env }] as const;
  // The user's own agents may be at work there.
  const isShared = runsInBackground(...background);
  const desktop = installed("code") ?? (await desktopVsCode());
  const window = desktop ? openDesktop(desktop, stage) : await openInBrowser(stage);
  await Promise.race([window.ended, interrupted]);
  await window.stop();
  // The daemon and the server that it started would otherwise outlive the window for a while.
  if (!isShared) await endBackground(...background);
  // Otherwise the demo's model would keep listening.
  process.exit(0);
}

async function demoEnvironment(): Promise<Record<string, string>> {
  console.log("OpenCode has no provider here: a model with canned answers stands in.");
  const model = await startScriptedModel({ fallback: demoAnswer });
  return hermeticEnv(hermeticHome(), demoConfig(model.url));
}

function openDesktop(executable: string, { folder, settings, env }: Stage): Window {
  const userDirectory = tempDir("data");
  writeSettings(userDirectory, settings);
  const args = [
    folder,
    ...["--wait", "--new-window", "--skip-welcome", "--disable-workspace-trust"],
    ...[repository, viewOpener].map((path) => `--extensionDevelopmentPath=${path}`),
    `--user-data-dir=${userDirectory}`,
    `--extensions-dir=${tempDir("ext")}`,
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
  ];
  const options = {
    env: { ...process.env, ...env },
    stdio: "inherit",
    shell: process.platform === "win32",
  } as const;
  const child = spawn(executable, args, options);
  const ended = once(child, "exit");
  console.log("VS Code opens. Close its window or press Ctrl+C to end.");
  return {
    ended,
    async stop() {
      if (child.kill()) await ended;
    },
  };
}

async function openInBrowser({ folder, settings, env }: Stage): Promise<Window> {
  const server = await startVsCodeServer({
    userDirectory: tempDir("data"),
    // Without tests to run, this editor ignores extensions under development.
    extensionsDirectory: extensionWithOpener(),
    settings,
    env,
  });
  const address = server.address({ folder });
  console.log(`\nVS Code with the extension: ${address}\nCtrl+C ends it.`);
  return server;
}

/** A program that the user installed, as opposed to those that npm puts on PATH while it runs a script. */
function installed(program: string): string | undefined {
  const names = process.platform === "win32" ? [`${program}.cmd`, `${program}.exe`] : [program];
  const directories = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((path) => !path.includes("node_modules"));
  const candidates = directories.flatMap((directory) => names.map((name) => join(directory, name)));
  return candidates.find((path) => existsSync(path));
}
