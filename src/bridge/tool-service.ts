import { ConnectionError, describeFailure } from "../engine/connection.ts";
import type { ConnectionState } from "../engine/connection.ts";
import { messageOf, Refusal } from "../engine/errors.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import { isSame } from "../engine/same.ts";
import type { SessionOwner } from "../engine/server-model.ts";
import type { KnownTasks, ToolResult } from "../tools/tool.ts";
import type { FileWrite, ToolCall } from "./tool-call.ts";
import type { ToolEndpoint } from "./tool-endpoint.ts";

/** The delay before what could not be published is tried again, in milliseconds: a disk may be full only for a moment. */
export const RETRY_MS = 10_000;

/** The folder's connection, as far as its tools need it. */
interface ToolConnection {
  /** Connected only once the tasks have been read. */
  readonly state: ConnectionState;
  readonly onDidChange: Event<void>;
  /** Resolves once connected and up to date. Rejects as soon as the signal aborts. */
  connect(signal: AbortSignal): Promise<void>;
}

export interface ToolServiceOptions {
  readonly connection: ToolConnection;
  /** Read again at each change. */
  readonly isEnabled: () => boolean;
  readonly known: KnownTasks;
  readonly commands: TaskCommands;
  /** Throws a `Refusal` if the files must not be written now. */
  readonly beginWrite: (write: FileWrite) => void;
  /** Which folder a session belongs to. Rejects with a `ServerFailure` if that can't be read. */
  readonly ownerOf: (sessionID: string) => Promise<SessionOwner>;
  /** The folder that the agents work in. */
  readonly directory: string;
  /** The worktrees in which agents of the folder work, too. Read again at each {@link ToolService.update}. */
  readonly worktrees: () => readonly string[];
  /** Where OpenCode's plugin looks for endpoints. */
  readonly stateFolder: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Served {
  /** The address of the server whose agents may call. */
  readonly server: string;
  /** The served folder and its worktrees. */
  directories: readonly string[];
  endpoint?: ToolEndpoint;
}

/** Serves the tools to the agents inside the OpenCode server that the folder is connected to. */
export class ToolService implements Disposable {
  private served: Served | undefined;
  private retry: Disposable | undefined;
  private readonly subscription: Disposable;

  constructor(private readonly options: ToolServiceOptions) {
    this.subscription = options.connection.onDidChange(() => this.update());
    this.update();
  }

  /** Opens, changes or closes the endpoint, as the connection, the settings and the worktrees require. */
  update(): void {
    const server = this.serverToServe();
    if (server === undefined) return this.close();
    if (server === this.served?.server) return this.updateWorktrees();
    this.close();
    this.served = { server, directories: this.directories() };
    void this.open(this.served);
  }

  dispose(): void {
    this.subscription.dispose();
    this.close();
  }

  private updateWorktrees(): void {
    const { served, options } = this;
    if (!served) return;
    const directories = this.directories();
    if (isSame(directories, served.directories)) return;
    served.directories = directories;
    served.endpoint?.setDirectories(directories).catch((error: unknown) => {
      if (this.served !== served) return;
      options.logger.error("Couldn't serve the agent tools in worktrees.", error);
      // So that the next update publishes them, whatever they are by then.
      served.directories = [];
      this.tryAgain();
    });
  }

  private tryAgain(): void {
    this.retry?.dispose();
    this.retry = this.options.clock.after(RETRY_MS, () => this.update());
  }

  private directories(): readonly string[] {
    const { directory, worktrees } = this.options;
    return [directory, ...worktrees()];
  }

  /** While the connection is being restored, the endpoint stays open and its calls wait. */
  private serverToServe(): string | undefined {
    const { connection, isEnabled } = this.options;
    if (!isEnabled()) return undefined;
    const { state } = connection;
    switch (state.kind) {
      case "connected":
        return state.url;
      case "connecting":
      case "reconnecting":
        return this.served?.server;
      case "disconnected":
      case "failed":
        return undefined;
    }
  }

  private async open(served: Served): Promise<void> {
    const { stateFolder, clock, logger } = this.options;
    // Loaded here because they are not needed before there is a connection.
    const [{ ToolEndpoint }, { removeStale }] = await Promise.all([
      import("./tool-endpoint.ts"),
      import("./endpoint-entries.ts"),
    ]);
    if (this.served !== served) return;
    try {
      const { server, directories } = served;
      const handle = (call: ToolCall, signal: AbortSignal) => this.handle(call, signal);
      const beginWrite = (write: FileWrite) => this.beginWrite(write);
      const place = { stateFolder, directories, server };
      served.endpoint = new ToolEndpoint({ ...place, handle, beginWrite, clock, logger });
      await served.endpoint.open();
    } catch (error) {
      if (this.served !== served) return;
      logger.error("Couldn't serve the agent tools to OpenCode.", error);
      this.close();
      this.tryAgain();
    }
    await removeStale(stateFolder).catch((error: unknown) =>
      logger.warn(`Couldn't remove old endpoints from the list: ${messageOf(error)}`),
    );
  }

  private close(): void {
    this.retry?.dispose();
    this.retry = undefined;
    this.served?.endpoint?.dispose();
    this.served = undefined;
  }

  private async handle(call: ToolCall, signal: AbortSignal): Promise<ToolResult | undefined> {
    const { connection, known, commands, clock } = this.options;
    const { runOf } = await import("../tools/runs.ts");
    const run = runOf(call.tool);
    await connection.connect(signal).catch(refuse);
    if (await this.isAnothers(call)) return undefined;
    signal.throwIfAborted();
    const { sessionID, messageID, agent, callID, waitedMs, permitted } = call;
    const caller = { sessionID, messageID, agent, callID, waitedMs, permitted, by: "agent" as const };
    return run(call.input, { caller, known, commands, signal, now: () => clock.now() });
  }

  private async beginWrite(write: FileWrite): Promise<boolean> {
    if (await this.isAnothers(write)) return false;
    this.options.beginWrite(write);
    return true;
  }

  private async isAnothers({ sessionID, onlyIfOurs }: ToolCall | FileWrite): Promise<boolean> {
    if (onlyIfOurs === undefined) return false;
    // Nearly all sessions are those of the folder, so a server that doesn't tell stops none of their calls.
    const owner = await this.options.ownerOf(sessionID).catch(() => "this");
    return owner === "another" || (onlyIfOurs && owner !== "this");
  }
}

/** Turns a failed connection into a refusal, which the agent can read. */
function refuse(error: unknown): never {
  if (!(error instanceof ConnectionError)) throw error;
  throw new Refusal("unavailable", describeFailure(error.failure));
}
