import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { spawnGroup, type ProcessGroup } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { ensureChromium, ensureVsCode } from "./ensure.ts";

/** User settings that keep the editor quiet and make each start the same. */
const quietSettings = {
  "workbench.startupEditor": "none",
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "workbench.tips.enabled": false,
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.editor.useModal": "off",
  // Keep text that is inserted into an editor, or replaces what is selected there, unchanged.
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.autoSurround": "never",
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "security.workspace.trust.startupPrompt": "never",
  "update.mode": "none",
  "remote.autoForwardPorts": false,
  // Else the extension host looks at all processes of the machine every two seconds.
  "remote.autoForwardPortsSource": "output",
  "git.enabled": false,
  "npm.fetchOnlinePackageInfo": false,
  "typescript.disableAutomaticTypeAcquisition": true,
  "chat.disableAIFeatures": true,
  "chat.commandCenter.enabled": false,
};

/** The built-in extensions that tests see something of. */
const FEW_BUILT_INS = [
  ...["configuration-editing", "git", "git-base", "javascript", "json", "json-language-features"],
  ...["markdown-basics", "markdown-language-features", "merge-conflict", "theme-defaults", "theme-seti"],
  "typescript-basics",
];

export type Settings = Readonly<Record<string, unknown>>;

export interface VsCodeOptions {
  /** Settings, state and logs, like the desktop's `--user-data-dir`. */
  readonly userDirectory: string;
  readonly extensionsDirectory: string;
  /** Whether there are only a dozen of the hundred built-in extensions: a window then opens in 3/4 of the time. */
  readonly fewBuiltIns?: boolean | undefined;
  readonly settings?: Settings;
  /** Added to the environment of the server and its extension hosts. */
  readonly env?: NodeJS.ProcessEnv;
  /** How long the extension host of a window that disappeared is kept, in seconds; by default hours. */
  readonly reconnectionGrace?: number | undefined;
  /** If false (the default), every folder is trusted; if true, none is until the user trusts it. */
  readonly workspaceTrust?: boolean;
  /**
   * Takes `WorkbenchAddress.extensionTestsPath` into account; without it that is ignored, and nothing says so. With it
   * the workbench shows no notification toasts.
   */
  readonly extensionTests?: boolean;
}

/** A VS Code server: it runs extension hosts, and a browser shows its workbench. */
export interface VsCodeServer {
  readonly port: number;
  /** Resolves when the server has ended. */
  readonly ended: Promise<void>;
  /** The address of a workbench. */
  address(workbench: WorkbenchAddress): string;
  /** The current processes of its extension hosts. */
  extensionHosts(): number[];
  /** Ends the extension hosts like a crash. */
  killExtensionHosts(): void;
  stop(): Promise<void>;
}

interface WorkbenchAddress {
  /** A folder, a `.code-workspace` file, or undefined for an empty window. */
  readonly folder?: string | undefined;
  readonly extensionDevelopmentPath?: string | undefined;
  readonly extensionTestsPath?: string | undefined;
}

/** The text of a settings file that also keeps the editor quiet. */
export function userSettings(settings: Settings = {}): string {
  return JSON.stringify({ ...quietSettings, ...settings });
}

/**
 * Writes the settings of a profile that is not open yet: the user's, and those of the machine, as the window is a
 * remote one to the editor, which takes settings of machine scope from there alone.
 */
export function writeSettings(userDirectory: string, settings: Settings = {}): void {
  for (const owner of ["User", "Machine"]) {
    const directory = join(userDirectory, owner);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "settings.json"), userSettings(settings));
  }
}

/** Installs a VSIX into an extensions directory. */
export function installVsix(
  vsix: string,
  directories: Pick<VsCodeOptions, "userDirectory" | "extensionsDirectory">,
): void {
  const { node, serverMain } = ensureVsCode();
  const args = [serverMain, ...directoryArguments(directories), "--install-extension", vsix, "--force"];
  execFileSync(node, args, { stdio: ["ignore", "ignore", "inherit"] });
}

/** Starts a VS Code server on a free port of 127.0.0.1. */
export async function startVsCodeServer(options: VsCodeOptions): Promise<VsCodeServer> {
  const { node, serverMain } = ensureVsCode();
  if (options.settings) writeSettings(options.userDirectory, options.settings);
  mkdirSync(options.extensionsDirectory, { recursive: true });
  // Without it, nothing is served on the port.
  const token = randomBytes(18).toString("hex");
  const args = [
    serverMain,
    ...["--host", "127.0.0.1", "--port", "0", "--connection-token", token],
    ...directoryArguments(options),
    ...(options.fewBuiltIns
      ? ["--builtin-extensions-dir", fewBuiltIns(serverMain, options.userDirectory)]
      : []),
    ...(options.extensionTests ? ["--enable-smoke-test-driver"] : []),
    ...["--disable-telemetry", "--telemetry-level", "off", "--disable-experiments"],
    "--disable-getting-started-override",
    ...(options.workspaceTrust ? [] : ["--disable-workspace-trust"]),
    ...(options.reconnectionGrace === undefined
      ? []
      : ["--reconnection-grace-time", String(options.reconnectionGrace)]),
  ];
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    XDG_RUNTIME_DIR: options.userDirectory,
    ...options.env,
    EXTENSIONS_GALLERY: '{"serviceUrl":""}',
  };
  // Inherited from an editor's terminal, they would connect the server to that editor.
  delete env["VSCODE_IPC_HOOK_CLI"];
  delete env["PORT"];
  const group = await spawnGroup(node, args, { env });
  const port = await listeningPort(group, join(options.userDirectory, "server.log"));
  return {
    port,
    ended: group.ended,
    address: (workbench) => address(port, token, workbench),
    extensionHosts: () => extensionHosts(group.pid),
    killExtensionHosts() {
      for (const pid of extensionHosts(group.pid)) process.kill(pid, "SIGKILL");
    },
    stop: () => group.stop(),
  };
}

export interface OpenBrowser {
  readonly browser: Browser;
  readonly page: Page;
  close(): Promise<void>;
}

/** Starts a headless Chromium with one empty page. */
export async function openBrowser(viewport = { width: 1280, height: 800 }): Promise<OpenBrowser> {
  const browser = await chromium.launch({
    executablePath: ensureChromium(),
    args: [
      // In a container, Chromium's sandbox has no user namespaces; the only pages are our own.
      "--no-sandbox",
      ...["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
  const permissions = ["clipboard-read", "clipboard-write"];
  const context = await browser.newContext({ viewport, permissions, colorScheme: "dark" });
  // Without a graphics card, each frame of the editor's spinners and progress bars costs the processor.
  await context.addInitScript(() => {
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { animation: none !important; }");
    document.adoptedStyleSheets = [still];
  });
  // A busy machine needs more than the usual half a minute to load a window.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  return { browser, page, close: () => browser.close() };
}

/** A folder with links to these extensions. */
function fewBuiltIns(serverMain: string, userDirectory: string): string {
  const all = join(dirname(dirname(serverMain)), "extensions");
  const folder = mkdtempSync(join(userDirectory, "built-ins-"));
  for (const name of FEW_BUILT_INS) symlinkSync(join(all, name), join(folder, name));
  return folder;
}

function directoryArguments(options: Pick<VsCodeOptions, "userDirectory" | "extensionsDirectory">): string[] {
  return [
    "--accept-server-license-terms",
    ...["--server-data-dir", options.userDirectory, "--user-data-dir", options.userDirectory],
    ...["--extensions-dir", options.extensionsDirectory],
  ];
}

async function listeningPort(group: ProcessGroup, logFile: string): Promise<number> {
  const log = createWriteStream(logFile);
  let output = "";
  for (const stream of [group.child.stdout, group.child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      log.write(chunk);
      output = (output + chunk.toString()).slice(-10_000);
    });
  try {
    const found = await until(
      "the VS Code server",
      () =>
        /Extension host agent listening on (\d+)/.exec(output)?.[1] ?? (group.running ? undefined : "ended"),
      60_000,
    );
    if (found === "ended") throw new Error("The VS Code server ended while it started");
    return Number(found);
  } catch (error) {
    await group.kill();
    throw new Error(`${(error as Error).message}\n${output}`, { cause: error });
  }
}

function address(
  port: number,
  token: string,
  { folder, extensionDevelopmentPath, extensionTestsPath }: WorkbenchAddress,
): string {
  const remote = (path: string): string => `vscode-remote://127.0.0.1:${port}${resolve(path)}`;
  const payload = [
    ...(extensionDevelopmentPath ? [["extensionDevelopmentPath", remote(extensionDevelopmentPath)]] : []),
    ...(extensionTestsPath ? [["extensionTestsPath", remote(extensionTestsPath)]] : []),
  ];
  const opened: Record<string, string> =
    folder === undefined
      ? { ew: "true" }
      : { [folder.endsWith(".code-workspace") ? "workspace" : "folder"]: resolve(folder) };
  const query = new URLSearchParams({
    tkn: token,
    ...opened,
    ...(payload.length > 0 ? { payload: JSON.stringify(payload) } : {}),
  });
  return `http://127.0.0.1:${port}/?${query}`;
}

/** All descendants of the server that run an extension host, according to the kernel. */
function extensionHosts(server: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    const stat = Number.isInteger(pid) ? readProcess(pid, "stat") : undefined;
    // `pid (name) state parent …`, where the name may hold anything.
    const parent = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
    if (parent !== undefined) parents.set(pid, Number(parent));
  }
  const descends = (pid: number): boolean => {
    for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) if (at === server) return true;
    return false;
  };
  return [...parents.keys()].filter(
    (pid) => descends(pid) && readProcess(pid, "cmdline")?.includes("--type=extensionHost"),
  );
}

function readProcess(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // It ended in the meantime.
    return undefined;
  }
}
