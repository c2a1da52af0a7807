import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { ChildProcess } from "node:child_process";
import { open, rm } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { textOf } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { ensurePrivateFolder } from "../state/private-files.ts";
import { GroupPort } from "../state/group-port.ts";
import { endTree, isAlive, mayBeLiving, signalGroup, startOf } from "../state/processes.ts";
import { DEFAULT_USERNAME, type ServerAccess } from "./access.ts";
import { checkedFetch } from "./checked-fetch.ts";
import { endOrphan, hasFollowers, lookAt } from "./end-orphan.ts";
import { failures } from "./failures.ts";
import { awaitHealth } from "./health.ts";
import { readServerState, writeServerState } from "./server-files.ts";
import type { ServerFiles, ServerState } from "./server-files.ts";
import type { ServerProgram } from "./server-program.ts";
import { limited, unlessCancelled } from "./cancel.ts";
import { requireSupported } from "./version-look.ts";
import { supportOf } from "./versions.ts";

const HOST = "127.0.0.1";
const isWindows = process.platform === "win32";
/** How long to wait for the server to exit by itself. */
const STOP_TIMEOUT_MS = 5_000;
const OUTPUT_TAIL_BYTES = 2_000;
/** Another program may take the free port before the server opens it. */
const PORT_ATTEMPTS = 3;
/** How often the output of a starting server is read, in milliseconds. */
const OUTPUT_LOOK_MS = 25;
/** How often a server that is not a child process is checked, in milliseconds. */
const LOOK_MS = 2_000;

export interface StartOptions {
  readonly program: ServerProgram;
  readonly files: ServerFiles;
  readonly timeoutMs: number;
  /** Aborts the start and ends the process. */
  readonly signal: AbortSignal;
}

/** One run of OpenCode's server. It outlives the process that started it, and a later process can join it. */
export class ServerProcess {
  private hasExited = false;
  private readonly port: GroupPort;
  private hasResponded = false;
  private readonly fetch = this.noting(checkedFetch(() => this.isListening()));
  /** Resolves when the process has ended, with a description of how. */
  readonly exited: Promise<Text>;

  private constructor(
    private state: ServerState,
    private readonly files: ServerFiles,
    exited: Promise<Text>,
    private readonly isJoined = false,
  ) {
    this.port = new GroupPort(state.pid, Number(new URL(state.url).port));
    this.exited = exited.then(async (how) => {
      this.hasExited = true;
      // Child processes of the server must end with it.
      if (await this.ownsGroup()) this.signal("SIGKILL");
      return how;
    });
  }

  /** Starts `opencode serve`. Resolves once it responds; otherwise rejects with a `ConnectionError` and ends it. */
  static async start(options: StartOptions): Promise<ServerProcess> {
    const { executable, env } = options.program;
    await unlessCancelled(requireSupported(executable, env), options.signal);
    for (let attempt = 1; ; attempt++) {
      const server = await this.spawn(options);
      const failure = await server.started(options);
      if (!failure) return server;
      await server.stop();
      const portTaken = (await server.output()).includes("ServeError");
      if (!portTaken || attempt === PORT_ATTEMPTS || options.signal.aborted)
        throw new ConnectionError(failure);
    }
  }

  /**
   * Joins the server described by these files. Undefined if there is none. Ends a server that cannot be used. Rejects, and
   * ends nothing, if it can't be told whether it is running.
   */
  static async join(files: ServerFiles): Promise<ServerProcess | undefined> {
    const state = await readServerState(files.state);
    // A server that has not responded yet may be opening a port that another program has taken.
    if (state?.version !== undefined && (await lookAt(state)) !== "gone")
      return new ServerProcess(state, files, gone(state), true);
    await endOrphan(files.state);
    return undefined;
  }

  private static async spawn({ program, files }: StartOptions): Promise<ServerProcess> {
    const port = await freePort();
    // New for each run, so that a program that later takes the port cannot learn the password of another run.
    const password = randomBytes(24).toString("base64url");
    const folder = dirname(files.log);
    await ensurePrivateFolder(folder);
    // Not a pipe, so that the server keeps running when the process that started it exits.
    const log = await open(files.log, "w", 0o600);
    try {
      // Fails here if the disk is full, rather than later when nothing would report it.
      await log.write("\n");
      const child = spawn(program.executable, ["serve", "--hostname", HOST, "--port", String(port)], {
        // Folders are specified with each call.
        cwd: folder,
        env: {
          ...program.env,
          OPENCODE_SERVER_USERNAME: DEFAULT_USERNAME,
          OPENCODE_SERVER_PASSWORD: password,
          // Version 2 prefers this one.
          OPENCODE_PASSWORD: undefined,
        },
        stdio: ["ignore", log.fd, log.fd],
        // A separate process group. On Windows, a process that is not detached ends with its parent.
        detached: !isWindows,
        windowsHide: true,
      });
      const exited = exitOf(child);
      const { pid = 0 } = child;
      // If the look fails, the server must still be guarded.
      const processStart = await startOf(pid).catch(() => undefined);
      const state = { url: `http://${HOST}:${port}`, password, pid, processStart };
      return new ServerProcess(state, files, exited);
    } finally {
      await log.close();
    }
  }

  get access(): ServerAccess {
    const { url, password } = this.state;
    return { url, username: DEFAULT_USERNAME, password, fetch: this.fetch };
  }

  /** OpenCode's version. Empty until the server has started. */
  get version(): string {
    return this.state.version ?? "";
  }

  get pid(): number {
    return this.state.pid;
  }

  /** Whether the process is running, or may be because the look at it failed. */
  isRunning(): Promise<boolean> {
    return this.isThere().catch(() => true);
  }

  /**
   * Whether the process listens on its port; where the system doesn't tell, whether it is running. Rejects if the look at it
   * failed, as nothing may be sent then.
   */
  private async isListening(): Promise<boolean> {
    if (this.hasExited) return false;
    return (await this.port.isListened()) ?? this.isThere();
  }

  private async isThere(): Promise<boolean> {
    return !this.hasExited && (await mayBeLiving(this.state));
  }

  /** The end of the server's output. */
  output(): Promise<string> {
    return tailOf(this.files.log).catch(() => "");
  }

  /**
   * Ends the server and its child processes. Resolves when they are gone and the state file is removed. One that was joined
   * stays if nothing tells that the process is the server: neither the system nor a response.
   */
  async stop(): Promise<void> {
    const found = this.isJoined ? await lookAt(this.state).catch(() => "unknown") : "running";
    if (found === "unknown" && !this.hasResponded) return;
    if (found !== "gone") this.signal("SIGTERM");
    const kill = setTimeout(() => this.signal("SIGKILL"), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(kill);
    await this.forget();
  }

  /** Removes the state file if possible. If it stays, readers check whether the process in it is still running. */
  async forget(): Promise<void> {
    await rm(this.files.state, { force: true }).catch(() => undefined);
  }

  /** Resolves to undefined once the server responds to an authenticated call, or to why it failed. */
  private async started({ timeoutMs, signal }: StartOptions): Promise<ConnectionFailure | undefined> {
    try {
      // Written first, so that after a crash of this process the next one finds the server.
      await writeServerState(this.files.state, this.state);
      const exited = this.exited.then((how) => ({ failure: how }));
      const answer = await limited(
        timeoutMs,
        (giveUp) => Promise.race([this.answers(giveUp), exited]),
        signal,
      );
      if ("failure" in answer) return failures.startFailed(answer.failure, await this.output());
      if (supportOf(answer.version) === "too-new") return failures.tooNew(answer.version);
      // If the first look failed, the next daemon depends on this one.
      const processStart = this.state.processStart ?? (await startOf(this.pid).catch(() => undefined));
      this.state = { ...this.state, processStart, version: answer.version };
      await writeServerState(this.files.state, this.state);
      return undefined;
    } catch (error) {
      if (signal.aborted) return failures.startFailed(sentence("the start was cancelled"));
      if (error instanceof DOMException && error.name === "TimeoutError")
        return failures.startTimeout(timeoutMs, await this.output());
      return failures.startFailed(textOf(error));
    }
  }

  private async answers(giveUp: AbortSignal): Promise<{ version: string } | { failure: Text }> {
    const { url } = this.state;
    // Send the password only after the process itself has reported that it listens on the port.
    while (!this.hasExited && /\bserver listening on (\S+)\s/.exec(await this.output())?.[1] !== url)
      await delay(OUTPUT_LOOK_MS, undefined, { signal: giveUp });
    const health = await awaitHealth(this.access, Number.POSITIVE_INFINITY, giveUp);
    if (health.kind === "healthy") return health;
    return { failure: sentence("another program answers on port {0}", new URL(url).port) };
  }

  /** Whether the group still is that of the server after its end: the ID of one that isn't a child is free for others. */
  private async ownsGroup(): Promise<boolean> {
    if (!this.isJoined || !isAlive(this.pid)) return true;
    return hasFollowers(this.state).catch(() => false);
  }

  private noting(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return async (...call) => {
      const response = await fetch(...call);
      this.hasResponded = true;
      return response;
    };
  }

  private signal(signal: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.state;
    if (pid === 0) return;
    if (!isWindows) signalGroup(pid, signal);
    else if (!this.hasExited) endTree(pid);
  }
}

function exitOf(child: ChildProcess): Promise<Text> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) =>
      resolve(signal ? sentence("ended by {0}", signal) : sentence("exit code {0}", String(code))),
    );
  });
}

async function tailOf(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const position = Math.max(0, size - OUTPUT_TAIL_BYTES);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(OUTPUT_TAIL_BYTES), position });
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function gone(state: ServerState): Promise<Text> {
  // A look that fails doesn't tell that it has ended, and whoever counts as ended is killed.
  while ((await lookAt(state).catch(() => "unknown")) !== "gone")
    await delay(LOOK_MS, undefined, { ref: false });
  return sentence("cause unknown");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, HOST, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
