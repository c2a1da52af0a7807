import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { ChildProcess } from "node:child_process";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { ToldError } from "../../engine/errors.ts";
import { sentence, type Text } from "../../engine/sentence.ts";
import { DEFAULT_USERNAME } from "../access.ts";
import type { ServerAccess } from "../access.ts";
import { failures } from "../failures.ts";
import { awaitHealth } from "../health.ts";
import { signalGroup } from "../../state/processes.ts";
import { limited } from "../time-limit.ts";
import type { ServerFault } from "./lease-protocol.ts";

const HOST = "127.0.0.1";
/** How long the server may take to end by itself. */
const STOP_TIMEOUT_MS = 5_000;
const OUTPUT_TAIL_CHARS = 2_000;
/** A free port can be taken by somebody else before the server opens it. */
const PORT_ATTEMPTS = 3;

export interface StartOptions {
  readonly executable: string;
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  /** Ends the start, and the process with it. */
  readonly signal: AbortSignal;
}

/** The server did not come up. */
export class StartError extends ToldError {
  override readonly name = "StartError";

  constructor(readonly failure: ServerFault) {
    super(failure.message);
  }
}

/** Starts `opencode serve` and resolves once it answers. Rejects with a {@link StartError}, leaving no process. */
export async function startServer(options: StartOptions): Promise<ServerProcess> {
  for (let attempt = 1; ; attempt++) {
    const server = new ServerProcess(options, await freePort());
    const failure = await server.started(options);
    if (!failure) return server;
    await server.stop();
    const portTaken = server.output.includes("ServeError");
    if (!portTaken || attempt === PORT_ATTEMPTS || options.signal.aborted) throw new StartError(failure);
  }
}

/** One run of OpenCode's server. */
export class ServerProcess {
  /** Its password is made for this run: whoever takes the port after it learns nothing that opens the next one. */
  readonly access: ServerAccess & { readonly password: string };
  /** OpenCode's, known once the server is started. */
  version = "";
  /** Settles when the process has ended, with how it did. */
  readonly exited: Promise<Text>;
  private readonly child: ChildProcess;
  private hasExited = false;
  private tail = "";

  constructor(
    { executable, directory, env }: StartOptions,
    private readonly port: number,
  ) {
    const password = randomBytes(24).toString("base64url");
    this.access = { url: `http://${HOST}:${port}`, username: DEFAULT_USERNAME, password };
    this.child = spawn(executable, ["serve", "--hostname", HOST, "--port", String(port)], {
      cwd: directory,
      env: { ...env, OPENCODE_SERVER_USERNAME: DEFAULT_USERNAME, OPENCODE_SERVER_PASSWORD: password },
      stdio: ["ignore", "pipe", "pipe"],
      // A process group of its own: what the server started ends with it.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    this.exited = new Promise((resolve) => {
      const end = (how: Text) => {
        this.hasExited = true;
        this.signal("SIGKILL");
        resolve(how);
      };
      this.child.once("error", (error) => end(error.message));
      this.child.once("exit", (code, signal) =>
        end(signal ? sentence("ended by {0}", signal) : sentence("exit code {0}", String(code))),
      );
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => this.keep(text));
  }

  get isRunning(): boolean {
    return !this.hasExited;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The end of what the server wrote. */
  get output(): string {
    return this.tail;
  }

  /** Resolves once the server answers an authenticated call, or to why it never will. */
  async started({ timeoutMs, signal }: StartOptions): Promise<ServerFault | undefined> {
    try {
      return await limited(
        timeoutMs,
        (giveUp) =>
          Promise.race([
            this.answers(giveUp),
            this.exited.then((how) => failures.startFailed(how, this.tail)),
          ]),
        signal,
      );
    } catch (error) {
      if (signal.aborted) return failures.startFailed(sentence("the start was cancelled"));
      if (error instanceof DOMException && error.name === "TimeoutError")
        return failures.startTimeout(timeoutMs, this.tail);
      throw error;
    }
  }

  private async answers(giveUp: AbortSignal): Promise<ServerFault | undefined> {
    await this.listening();
    const health = await awaitHealth(this.access, Number.POSITIVE_INFINITY, giveUp);
    if (health.kind !== "healthy")
      return failures.startFailed(
        sentence("another program answers on port {0}", String(this.port)),
        this.tail,
      );
    this.version = health.version;
    return undefined;
  }

  /** Resolves once the process itself says that the port is its own: until then the password may not be sent there. */
  private listening(): Promise<void> {
    return new Promise((resolve) => {
      let text = "";
      const look = (more: string) => {
        text = (text + more).slice(-OUTPUT_TAIL_CHARS);
        if (/ server listening on (\S+)\s/.exec(text)?.[1] !== this.access.url) return;
        this.child.stdout?.off("data", look);
        resolve();
      };
      this.child.stdout?.on("data", look);
    });
  }

  /** Ends the server and what it started; resolves when it is gone. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const kill = setTimeout(() => this.signal("SIGKILL"), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(kill);
  }

  private signal(signal: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    if (process.platform !== "win32") signalGroup(pid, signal);
    else if (!this.hasExited) endTree(pid);
  }

  private keep(text: string): void {
    this.tail = (this.tail + text).slice(-OUTPUT_TAIL_CHARS);
  }
}

/** Windows knows no process groups; its own tool ends a process and its descendants. */
function endTree(pid: number): void {
  spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on(
    "error",
    () => process.kill(pid),
  );
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
