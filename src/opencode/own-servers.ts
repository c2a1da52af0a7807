import { readdir } from "node:fs/promises";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { messageOf } from "../engine/errors.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { Attachment, RunningServer, Search } from "./attachment.ts";
import { endOrphan } from "./end-orphan.ts";
import { failures } from "./failures.ts";
import { KeyedQueue } from "./keyed-queue.ts";
import { OwnServer } from "./own-server.ts";
import { serverFiles, serverKeys, sweepLogs } from "./server-files.ts";
import { ServerProcess } from "./server-process.ts";
import { keyOf, type ServerProgram } from "./server-program.ts";

export interface OwnServersOptions {
  /** The folder for server state files, which only this user can access. */
  readonly stateFolder: string;
  /** How long a server keeps running after the last folder left it temporarily, in milliseconds. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The server that a folder needs. */
export interface Wanted {
  /** Why there is none, if so. */
  readonly program: ServerProgram | ConnectionFailure;
  /**
   * The key of the server that the folder uses, or used when the last daemon ended. Its tasks are running there, so as long
   * as it is running it is the one, whatever the program is by now.
   */
  readonly usedKey?: string | undefined;
  /** How long starting it may take, in milliseconds. */
  readonly startTimeoutMs: number;
}

/** The OpenCode servers that the extension runs for this user: one for all folders with the same program. */
export class OwnServers {
  /** By the keys of their programs. */
  private readonly servers = new Map<string, OwnServer>();
  private readonly lookups = new KeyedQueue();
  private readonly searches = new Set<Promise<unknown>>();

  constructor(private readonly options: OwnServersOptions) {}

  /** Runs a search for the server that a folder needs. Until it is over, no server counts as unused. */
  async search<T>(search: () => Promise<T>): Promise<T> {
    const result = search();
    this.searches.add(result);
    try {
      return await result;
    } finally {
      this.searches.delete(result);
    }
  }

  /** Joins the program's running server. Undefined if there is none. Throws a `ConnectionError` if it is unusable. */
  async adopt(wanted: Wanted, search: Search): Promise<Attachment | undefined> {
    const server = await this.find(wanted);
    return server && this.use(server, wanted, search);
  }

  /** Joins the server of the program, starting it if necessary. Throws a `ConnectionError` if that fails. */
  async start(wanted: Wanted, search: Search): Promise<Attachment> {
    search.onProgress(sentence("Starting OpenCode…"));
    const server = await this.find(wanted, "start");
    return this.use(server, wanted, search);
  }

  /** Ends the server of the program even if it is in use. Resolves when it is gone. */
  async stop(wanted: Wanted): Promise<void> {
    const server = await this.find(wanted);
    if (server instanceof OwnServer) await server.stop("a user asked for it");
  }

  /** Leaves the servers to the next daemon. Resolves once those that were already ending are gone. */
  async leave(): Promise<void> {
    await Promise.all([...this.servers.values()].map((server) => server.leave()));
  }

  /** Ends the servers that an earlier daemon left and that no folder uses, and removes old logs. */
  async sweep(): Promise<void> {
    const { stateFolder, clock, logger } = this.options;
    for (const key of serverKeys(await readdir(stateFolder))) {
      while (this.searches.size > 0) await Promise.allSettled(this.searches);
      const { state } = serverFiles(stateFolder, key);
      try {
        await this.lookups.run(key, async () => {
          if (!this.servers.has(key)) await endOrphan(state);
        });
      } catch (error) {
        logger.warn(
          `The server in ${state}, left by an earlier daemon, couldn't be ended: ${messageOf(error)}`,
        );
      }
    }
    await sweepLogs(stateFolder, clock.now());
  }

  /** Resolves to why there is no program if that is needed. */
  private find(wanted: Wanted, ifNone: "start"): Promise<OwnServer | ConnectionFailure>;
  private find(wanted: Wanted): Promise<OwnServer | ConnectionFailure | undefined>;
  private async find(wanted: Wanted, ifNone?: "start"): Promise<OwnServer | ConnectionFailure | undefined> {
    const { program, usedKey } = wanted;
    const used = usedKey === undefined ? undefined : await this.findByKey(usedKey, wanted);
    if (used) return used;
    return "code" in program ? program : this.findByKey(keyOf(program), wanted, ifNone);
  }

  private findByKey(key: string, wanted: Wanted, ifNone?: "start"): Promise<OwnServer | undefined> {
    return this.lookups.run(key, async () => {
      const known = this.servers.get(key);
      if (known && !known.isEnding) return known;
      await known?.over;
      const joined = await ServerProcess.join(serverFiles(this.options.stateFolder, key));
      return joined || ifNone === "start" ? this.keep(key, wanted, joined) : undefined;
    });
  }

  private keep(key: string, { program, startTimeoutMs }: Wanted, joined?: ServerProcess): OwnServer {
    const files = serverFiles(this.options.stateFolder, key);
    // Other folders share the server, so it is never restarted with what has changed only for this one.
    const own = "code" in program || keyOf(program) !== key ? undefined : program;
    const server = new OwnServer({ ...this.options, program: own, key, files, startTimeoutMs }, joined);
    this.servers.set(key, server);
    void server.over.then(() => {
      if (this.servers.get(key) === server) this.servers.delete(key);
    });
    return server;
  }

  /** Resolves once the server responds. */
  private async use(
    server: OwnServer | ConnectionFailure,
    wanted: Wanted,
    { signal }: Search,
  ): Promise<Attachment> {
    if ("code" in server) throw new ConnectionError(server);
    const attachment = this.attach(server, wanted);
    try {
      const running = await attachment.running(signal);
      if (running === "stopped") throw new ConnectionError(failures.lost());
      if ("code" in running) throw new ConnectionError(running);
      return attachment;
    } catch (error) {
      attachment.leave();
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Attaches a folder to the server, and to that of its program once the process that it joined is gone. */
  private attach(first: OwnServer, { program, startTimeoutMs }: Wanted): Attachment {
    const key = "code" in program ? undefined : keyOf(program);
    let server = first;
    let attachment = server.attach();
    let joined: number | undefined;
    /** Whether this is neither the process that the folder joined nor one that was started with the folder's program. */
    const isOthers = (running: RunningServer | ConnectionFailure): boolean => {
      if (attachment.key === key) return false;
      if ("code" in running) return true;
      joined ??= running.pid;
      return running.pid !== joined;
    };
    return {
      own: true,
      get key() {
        return attachment.key;
      },
      loadTimeoutMs: attachment.loadTimeoutMs,
      running: async (signal) => {
        for (;;) {
          const running = await attachment.running(signal);
          if (!server.isGone && (running === "stopped" || !isOthers(running))) return running;
          const next = await this.find({ program, startTimeoutMs }, "start");
          if ("code" in next) return next;
          const attached = next.attach();
          // Whoever doesn't wait any more may have left for good.
          if (signal.aborted) attached.leave();
          signal.throwIfAborted();
          attachment.leave();
          [server, attachment] = [next, attached];
        }
      },
      leave: () => attachment.leave(),
      finish: () => attachment.finish(),
      giveUp: () => attachment.giveUp(),
    };
  }
}
