import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { realpath } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { finished } from "node:stream";
import * as z from "zod/mini";
import { AskFirst, messageOf, Refusal, UserFacingError } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import { oneLine } from "../engine/fork/excerpt.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { parseJson } from "../state/json-files.ts";
import type { ToolResult } from "../tools/tool.ts";
import {
  FILE_WRITE_PATH,
  fileWrite,
  KEEP_ALIVE_MS,
  MAX_CALL_BYTES,
  TOOL_CALL_PATH,
  toolCall,
  type FileWrite,
  type ToolCall,
  type ToolReply,
} from "./tool-call.ts";
import { publishEntry } from "./endpoint-entries.ts";
import type { PublishedEntry } from "./endpoint-entries.ts";

/** Every call holds a connection until it is answered, and agents can have many calls waiting. */
const MAX_CALLS = 256;
/** The maximum of connections that have not sent the token, beyond which the oldest is closed. */
const MAX_STRANGERS = 32;
/** For the head of a request, including the token. */
const HEAD_TIMEOUT_MS = 5_000;
/** On one machine even the longest call arrives within a second, unless the machine is very busy. */
const READ_TIMEOUT_MS = 30_000;

export interface ToolEndpointOptions {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  /** The folder whose agents are served, and its worktrees. Plugins find the endpoint by their real paths. */
  readonly directories: readonly string[];
  /** The address of the OpenCode server whose agents are served. */
  readonly server: string;
  /**
   * Carries out a call. Resolves to undefined if its session belongs to another folder, and it asks about that. The
   * message of a `UserFacingError` reaches the model. `signal` aborts once the caller no longer waits for
   * the answer.
   */
  readonly handle: (call: ToolCall, signal: AbortSignal) => Promise<ToolResult | undefined>;
  /**
   * Called before files are written. Resolves to false if the session belongs to another folder, and the write asks
   * about that. A `Refusal` prevents the write, and its message reaches the model.
   */
  readonly beginWrite: (write: FileWrite) => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Defaults to the current process. */
  readonly pid?: number;
  /** Within how many milliseconds a request must arrive completely. Defaults to 30 s. */
  readonly readTimeout?: number;
}

/**
 * The HTTP endpoint through which the OpenCode plugin calls the tools. It serves only clients that send the token,
 * which is in an entry that only this user can read, and never web pages.
 */
export class ToolEndpoint implements Disposable {
  private readonly token = randomBytes(32).toString("base64url");
  private readonly credentials = digest(`Bearer ${this.token}`);
  private readonly server: Server;
  /** Connections that have not sent the token, the oldest first. */
  private readonly strangers = new Set<Socket>();
  /** Undefined while it is not listening. */
  private port: number | undefined;
  private directories: readonly string[];
  private entry: PublishedEntry | undefined;
  /** The end of the last publication. */
  private published: Promise<void> = Promise.resolve();
  private disposed = false;

  constructor(private readonly options: ToolEndpointOptions) {
    const { logger, directories, readTimeout = READ_TIMEOUT_MS } = options;
    this.directories = directories;
    const headTimeout = Math.min(readTimeout, HEAD_TIMEOUT_MS);
    this.server = createServer(
      { headersTimeout: headTimeout, requestTimeout: readTimeout, connectionsCheckingInterval: headTimeout },
      (request, response) => void this.serve(request, response),
    );
    this.server.maxConnections = MAX_CALLS + MAX_STRANGERS + 1;
    this.server.on("connection", (socket) => this.meet(socket));
    this.server.on("error", (error) => logger.error("The endpoint of the agents' tools failed.", error));
  }

  /** Resolves when plugins can find the endpoint. Rejects if it cannot listen or its entry cannot be written. */
  async open(): Promise<void> {
    this.port = await listen(this.server);
    try {
      await this.publish();
    } catch (error) {
      this.dispose();
      throw error;
    }
    // `dispose` may have been called in the meantime.
    if (this.disposed) this.close();
  }

  /** Changes the folders whose agents are served. */
  async setDirectories(directories: readonly string[]): Promise<void> {
    this.directories = directories;
    // Otherwise `open` publishes them.
    if (this.port !== undefined) await this.publish();
  }

  /** Withdraws the entry and breaks waiting calls, so that their plugins look for another endpoint immediately. */
  dispose(): void {
    this.disposed = true;
    if (this.port !== undefined) this.close();
  }

  private close(): void {
    this.withdraw();
    this.server.close();
    this.server.closeAllConnections();
  }

  private meet(socket: Socket): void {
    this.strangers.add(socket);
    socket.once("close", () => this.strangers.delete(socket));
    const [oldest] = this.strangers;
    if (this.strangers.size > MAX_STRANGERS) oldest?.destroy();
  }

  private withdraw(): void {
    try {
      this.entry?.withdraw();
    } catch (error) {
      // Plugins skip an entry if nothing answers at its port.
      this.options.logger.warn(`Couldn't remove an entry for plugins: ${messageOf(error)}`);
    }
    this.entry = undefined;
  }

  /** Publishes the entry in place of an earlier one, which stays until then. */
  private publish(): Promise<void> {
    const publication = this.published.then(async () => {
      if (this.disposed || this.port === undefined) return;
      const entry = await this.newEntry(this.port);
      this.withdraw();
      this.entry = entry;
      if (this.disposed) this.withdraw();
    });
    this.published = publication.catch(() => undefined);
    return publication;
  }

  private async newEntry(port: number): Promise<PublishedEntry> {
    const { stateFolder, server, clock, pid = process.pid } = this.options;
    const directories = await Promise.all(
      // The path of a worktree that was removed stays as it is.
      this.directories.map((directory) => realpath(directory).catch(() => directory)),
    );
    return publishEntry(stateFolder, {
      directories,
      server,
      port,
      token: this.token,
      pid,
      openedAt: clock.now(),
    });
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    // When a connection breaks, `close` follows.
    response.on("error", () => undefined);
    try {
      this.admit(request);
      this.strangers.delete(request.socket);
      const body = await readBody(request);
      const line =
        request.url === FILE_WRITE_PATH
          ? this.takeWrite(parseBody(fileWrite, body))
          : this.carryOut(parseBody(toolCall, body), gone.signal);
      await this.answer(line, response, gone.signal);
    } catch (error) {
      if (error instanceof Denial) deny(request, response, error);
      // Any other error means that the client left before its request was complete.
      else response.destroy();
      this.options.logger.debug(`Refused a request for a tool: ${messageOf(error)}`);
    }
  }

  /** Throws a {@link Denial}. Without the token, a response reveals nothing that differs between endpoints. */
  private admit({ method, url, headers }: IncomingMessage): void {
    // Prevents DNS rebinding: a web page whose host name resolves to 127.0.0.1 sends its own host name.
    if (headers.host !== `127.0.0.1:${this.port}` && headers.host !== `localhost:${this.port}`)
      throw new Denial(403, "Call 127.0.0.1 by this address.");
    if (headers.origin !== undefined) throw new Denial(403, "Web pages are not answered.");
    if (url !== TOOL_CALL_PATH && url !== FILE_WRITE_PATH)
      throw new Denial(404, "There is nothing at this path.");
    if (method !== "POST") throw new Denial(405, "Use POST.");
    if (!timingSafeEqual(digest(headers.authorization ?? ""), this.credentials))
      throw new Denial(401, "Send the token of this endpoint's entry as a bearer token.");
    if (mediaType(headers["content-type"]) !== "application/json")
      throw new Denial(415, "Send the call as application/json.");
    if (Number(headers["content-length"]) > MAX_CALL_BYTES) throw tooLarge();
  }

  private async answer(line: Promise<string>, response: ServerResponse, signal: AbortSignal): Promise<void> {
    response.writeHead(200, { "content-type": "application/x-ndjson", connection: "close" });
    response.flushHeaders();
    const keepAlive = repeat(this.options.clock, KEEP_ALIVE_MS, () => response.write("\n"));
    signal.addEventListener("abort", () => keepAlive.dispose());
    const reply = await line;
    keepAlive.dispose();
    if (!signal.aborted) response.end(reply);
  }

  private async carryOut(call: ToolCall, signal: AbortSignal): Promise<string> {
    try {
      const result = await this.options.handle(call, signal);
      return encodeReply(result ? { type: "result", ...result } : { type: "not-ours" });
    } catch (error) {
      if (error instanceof AskFirst && call.permitted)
        return encodeReply({ type: "ask", agent: error.agent, message: error.message });
      if (error instanceof UserFacingError)
        // A model that sees its own line breaks quoted could take them for another message.
        return encodeReply({ type: "refused", message: oneLine(error.message) });
      if (!signal.aborted) this.options.logger.error(`The call of ${call.tool} failed.`, error);
      return encodeReply({ type: "refused", message: UNEXPECTED });
    }
  }

  private async takeWrite(write: FileWrite): Promise<string> {
    try {
      if (!(await this.options.beginWrite(write))) return encodeReply({ type: "not-ours" });
    } catch (error) {
      if (error instanceof Refusal) return encodeReply({ type: "refused", message: error.message });
      // If the check itself fails, the write is allowed.
      this.options.logger.error("Couldn't check whether a file has changed.", error);
    }
    return encodeReply({ type: "result", title: "", text: "" });
  }
}

const UNEXPECTED =
  "The call failed inside Async Agents; see with asyncagents_list what was done, and tell the user that the log of Async Agents says more.";

/** Why a request is rejected, in a sentence for authors of clients. */
class Denial extends Error {
  constructor(
    /** The HTTP status. */
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

function tooLarge(): Denial {
  return new Denial(413, `Send a call of at most ${MAX_CALL_BYTES} bytes.`);
}

function deny(request: IncomingMessage, response: ServerResponse, { status, message }: Denial): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(message),
    connection: "close",
  });
  response.write(message);
  // Closing the connection while the client still sends would discard the response, so the rest is read and dropped.
  finished(request.resume(), () => response.end());
}

/** Rejects with a {@link Denial} as soon as the body is too large, and with an error if the connection breaks. */
function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_CALL_BYTES) return chunks.push(chunk);
      chunks.length = 0;
      reject(tooLarge());
    });
    request.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    request.once("error", reject);
  });
}

function parseBody<T>(schema: z.ZodMiniType<T>, body: string): T {
  const json = parseJson(body);
  if (json === undefined) throw new Denial(400, "The call is not valid JSON.");
  const parsed = z.safeParse(schema, json);
  if (!parsed.success) throw new Denial(400, "This version of the extension takes no call of this form.");
  return parsed.data;
}

function encodeReply(reply: ToolReply): string {
  return `${JSON.stringify(reply)}\n`;
}

function mediaType(header = ""): string | undefined {
  return header.split(";", 1)[0]?.trim().toLowerCase();
}

/** Hashes to a fixed length, as `timingSafeEqual` requires. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function repeat(clock: Clock, ms: number, callback: () => void): Disposable {
  let timer = clock.after(ms, next);
  function next(): void {
    timer = clock.after(ms, next);
    callback();
  }
  return { dispose: () => timer.dispose() };
}

/** Resolves to the port that was assigned. */
function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      server.off("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
