import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { versionIn } from "../../src/opencode/versions.ts";
import { spawnGroup, type ProcessGroup } from "./process.ts";
import type { ScriptedModel } from "./scripted-model.ts";
import { tempDir } from "./temp.ts";
import { until } from "./wait.ts";

const requireFromHere = createRequire(import.meta.url);

/** Another process may take the free port before the server opens it. */
const PORT_ATTEMPTS = 3;

export interface OpenCodeOptions {
  /** Provides the models `fake/m` and `fake/m2`; without it there are no models. */
  readonly model?: Pick<ScriptedModel, "url">;
  /** Random by default; null starts a server without a password. */
  readonly password?: string | null;
  /** The folder it works in; by default a new empty one. */
  readonly directory?: string;
  /** The home for its data and settings; by default a new one (see `hermeticHome`). */
  readonly home?: string;
  /** Added to its environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Replaces top-level entries of its configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A real OpenCode server, isolated from the machine's own OpenCode. */
export interface OpenCodeServer {
  readonly url: string;
  /** Undefined if it needs none. The user name is `opencode`. */
  readonly password: string | undefined;
  readonly directory: string;
  readonly home: string;
  /** The current process; changes with `restart`. */
  readonly pid: number;
  /** The complete environment of its process. */
  readonly env: NodeJS.ProcessEnv;
  readonly binary: string;
  /** Calls the server with its password; `path` starts with `/`. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Ends it like a crash. */
  kill(): Promise<void>;
  /** Starts it again, whether it has ended or not, at the same address and with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1 and waits until it answers. */
export async function startOpenCode(options: OpenCodeOptions = {}): Promise<OpenCodeServer> {
  const home = options.home ?? hermeticHome();
  const directory = options.directory ?? tempDir("work");
  const password =
    options.password === null ? undefined : (options.password ?? randomBytes(18).toString("base64url"));
  const binary = openCodeBinary();
  const env: NodeJS.ProcessEnv = {
    ...environmentWithoutOpenCode(),
    ...hermeticEnv(home, { ...(options.model ? modelConfig(options.model) : {}), ...options.config }),
    ...(password === undefined ? {} : { OPENCODE_SERVER_PASSWORD: password }),
    ...options.env,
  };
  let port = 0;
  const url = (): string => `http://127.0.0.1:${port}`;
  const authorization = password === undefined ? undefined : basicAuthorization(password);
  const request = (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    if (authorization !== undefined) headers.set("authorization", authorization);
    return fetch(url() + path, { ...init, headers });
  };
  const start = (): Promise<ProcessGroup> => serve(binary, port, directory, env, request);
  const startAnew = async (attempt = 1): Promise<ProcessGroup> => {
    port = await freePort();
    return start().catch((error: Error) => {
      if (attempt === PORT_ATTEMPTS || !error.message.includes("ServeError")) throw error;
      return startAnew(attempt + 1);
    });
  };

  let group = await startAnew();
  return {
    url: url(),
    password,
    directory,
    home,
    env,
    binary,
    get pid() {
      return group.pid;
    },
    fetch: request,
    kill: () => group.kill(),
    async restart() {
      await group.stop();
      group = await start();
    },
    stop: () => group.stop(),
  };
}

/** The authorization header for a server with this password. */
export function basicAuthorization(password: string): string {
  return `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}`;
}

const READS_IMAGES = { input: ["text", "image"], output: ["text"] };

/** The configuration for the scripted model: `fake/m` (the default, reads images) and `fake/m2`. */
export function modelConfig(model: Pick<ScriptedModel, "url">): Record<string, unknown> {
  const limit = { context: 200_000, output: 8_000 };
  return {
    model: "fake/m",
    small_model: "fake/m",
    enabled_providers: ["fake"],
    provider: {
      fake: {
        npm: "@ai-sdk/openai-compatible",
        name: "Fake",
        options: { baseURL: model.url, apiKey: "none" },
        models: {
          m: { name: "Fake M", tool_call: true, attachment: true, modalities: READS_IMAGES, limit },
          m2: { name: "Fake M2", tool_call: true, limit },
        },
      },
    },
  };
}

/**
 * Environment variables for an OpenCode server, or for a program that starts one, which restrict it to `home`, keep it
 * offline and set its configuration.
 */
export function hermeticEnv(
  home: string,
  config: Readonly<Record<string, unknown>> = {},
): Record<string, string> {
  return {
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    XDG_STATE_HOME: join(home, ".local", "state"),
    XDG_CACHE_HOME: join(home, ".cache"),
    XDG_RUNTIME_DIR: join(home, ".run"),
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_MODELS_PATH: join(home, NO_MODELS),
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      $schema: "https://opencode.ai/config.json",
      autoupdate: false,
      share: "disabled",
      ...config,
    }),
  };
}

/** Replaces OpenCode's catalog of thousands of models, which costs the first prompt in each folder several seconds. */
const NO_MODELS = "models.json";

/** A new home in which OpenCode has nothing to install. */
export function hermeticHome(): string {
  const home = tempDir("home");
  writeFileSync(join(home, NO_MODELS), "{}");
  mkdirSync(join(home, ".run"), { mode: 0o700 });
  pretendPluginPackageInstalled(join(home, ".config", "opencode"), openCodeVersion());
  return home;
}

/** The `opencode` executable in TEST_OPENCODE, by default the one for this machine from the development dependencies. */
export function openCodeBinary(): string {
  const chosen = process.env["TEST_OPENCODE"];
  if (chosen) return chosen;
  const binary = openCodeIn(import.meta.dirname);
  if (binary !== undefined) return binary;
  throw new Error(
    `OpenCode is not installed for this machine (none of ${packages().join(", ")}). ` +
      "Run `npm ci`; where that brings none, `npm install --no-save opencode-ai@1.18.33`.",
  );
}

/** The executable for this machine in the packages that can be resolved from a folder. */
export function openCodeIn(folder: string): string | undefined {
  const file = join("bin", process.platform === "win32" ? "opencode.exe" : "opencode");
  return packages()
    .flatMap((name) => packageFile(folder, name, file) ?? [])
    .at(0);
}

/** The packages that may have an executable for this machine, the best one first. */
function packages(): readonly string[] {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `opencode-${platform}-${process.arch}`;
  const all = [name, `${name}-baseline`, `${name}-musl`, `${name}-baseline-musl`];
  return usesMusl() ? all.toReversed() : all;
}

function packageFile(folder: string, name: string, file: string): string | undefined {
  try {
    const manifest = requireFromHere.resolve(`${name}/package.json`, { paths: [folder] });
    const path = join(dirname(manifest), file);
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

function usesMusl(): boolean {
  if (process.platform !== "linux") return false;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined;
}

function environmentWithoutOpenCode(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("OPENCODE")));
}

async function serve(
  binary: string,
  port: number,
  directory: string,
  env: NodeJS.ProcessEnv,
  request: (path: string, init: RequestInit) => Promise<Response>,
): Promise<ProcessGroup> {
  const group = await spawnGroup(binary, ["serve", "--hostname", "127.0.0.1", "--port", String(port)], {
    cwd: directory,
    env,
  });
  const closed = once(group.child, "close");
  let output = "";
  for (const stream of [group.child.stdout, group.child.stderr])
    stream?.on("data", (chunk: Buffer) => (output = (output + chunk.toString()).slice(-10_000)));
  try {
    await until(
      "the OpenCode server",
      async () => {
        if (!group.running) return "ended";
        // A request sent at the moment the port opens may hang forever.
        const patienceMs = output.includes("listening on") ? 500 : 100;
        const health = await request("/global/health", { signal: AbortSignal.timeout(patienceMs) });
        return health.ok && "up";
      },
      60_000,
    );
    if (!group.running) throw new Error("The OpenCode server ended while it started");
  } catch (error) {
    await group.kill();
    // Its last output may be read after its end.
    await closed;
    throw new Error(`${(error as Error).message}\n${output}`, { cause: error });
  }
  return group;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/**
 * OpenCode installs this package from the registry into each configuration folder that lacks it; with a plugin
 * configured, it waits for the installation.
 */
function pretendPluginPackageInstalled(configDirectory: string, version: string): void {
  const name = "@opencode-ai/plugin";
  const dependencies = { [name]: version };
  const files: Record<string, unknown> = {
    "package.json": { dependencies },
    "package-lock.json": {
      lockfileVersion: 3,
      packages: { "": { dependencies }, [`node_modules/${name}`]: { version } },
    },
    [`node_modules/${name}/package.json`]: { name, version },
  };
  for (const [file, content] of Object.entries(files)) {
    const path = join(configDirectory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  }
}

/** The version of {@link openCodeBinary}. */
export function openCodeVersion(): string {
  const binary = openCodeBinary();
  const manifest = join(dirname(dirname(binary)), "package.json");
  if (existsSync(manifest))
    return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
  // It isn't in its package, such as one that was downloaded.
  return versionIn(spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout) ?? "0.0.0";
}
