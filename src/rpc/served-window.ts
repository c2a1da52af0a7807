import type { Socket } from "node:net";
import * as z from "zod/mini";
import { Refusal } from "../engine/errors.ts";
import type { Disposable, Event } from "../engine/event.ts";
import type { Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import {
  conversationLink,
  conversationQuestion,
  environment,
  folderSettings,
  openFolder,
  parse,
  parseCall,
} from "./arguments.ts";
import {
  PROTOCOL_VERSION,
  type Conversation,
  type DaemonNotifications,
  type DaemonRequests,
  type FolderService,
  type FolderSnapshot,
  type Welcome,
  type WindowNotifications,
} from "./contract.ts";
import { OtherProtocol } from "./failures.ts";
import type { FolderHost, HostedFolder } from "./folder-host.ts";
import { putSignal } from "./methods.ts";
import { isProof, proofOf } from "./proof.ts";
import { AnsweringWire } from "./answering-wire.ts";

/** How many bytes are read from a client before it has proven the token. */
const MAX_GREETING_BYTES = 10_000;

/** The answer of a daemon that is ending: the caller sees its connection close, and asks the next daemon. */
const NO_ANSWER = new Promise<never>(() => undefined);

/** Not strict, so that windows of other versions can be told about the mismatch. */
const hello = z.object({
  nonce: z.string(),
  proof: z.string(),
  protocol: z.number(),
  version: z.string(),
  pid: z.number(),
});
const ofFolder = z.object({ directory: z.string() });
const call = z.object({ directory: z.string(), method: z.string(), args: z.unknown() });
const reopened = z.object({ directory: z.string(), env: environment, onlyIfUsed: z.boolean() });
const search = z.object({ path: z.optional(z.string()), env: environment });
const installation = z.object({ isPrivate: z.boolean(), env: environment });
const ofConversation = z.object({ directory: z.string(), key: z.number() });
const openedConversation = z.extend(ofConversation, { id: z.string() });
const question = z.extend(ofConversation, { question: conversationQuestion });
const openedLink = z.extend(ofConversation, { link: conversationLink });
const configuration = z.object({ directory: z.string(), settings: folderSettings });
const work = z.object({ directories: z.array(z.string()) });

export interface ServedWindowOptions {
  readonly host: FolderHost;
  readonly version: string;
  readonly token: string;
  readonly logger: Logger;
}

/** A folder of a window, from the request to open it until it is closed. */
interface ServedFolder {
  /** Undefined while the folder is being opened. */
  hosted?: HostedFolder;
  changes?: Disposable;
  readonly conversations: Map<number, Promise<Conversation>>;
}

/** The connection to one window. */
export class ServedWindow {
  private readonly wire: AnsweringWire<DaemonNotifications>;
  /** What the window may request. A window with a newer protocol may only ask for a hand-over. */
  private admitted: "nothing" | "hand-over" | "all" = "nothing";
  private readonly folders = new Map<string, ServedFolder>();
  private log: Disposable | undefined;
  readonly closed: Promise<void>;

  constructor(
    socket: Socket,
    private readonly options: ServedWindowOptions,
    private readonly onAdmitted: () => void,
  ) {
    const limit = (): void => {
      if (this.admitted !== "nothing") socket.off("data", limit);
      else if (socket.bytesRead > MAX_GREETING_BYTES) socket.destroy();
    };
    socket.on("data", limit);
    this.wire = new AnsweringWire(
      socket,
      (method, params) => this.hear(method, params),
      (method, params, signal) => this.answer(method, params, signal),
    );
    this.closed = this.wire.closed.then(() => this.leave());
  }

  close(): void {
    this.wire.close();
  }

  private async answer(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const request = method as keyof DaemonRequests;
    if (request === "hello") return this.greet(parse(method, hello, params));
    if (request === "handOver" && this.admitted !== "nothing") return this.options.host.handOver();
    if (this.admitted !== "all") throw notGreeted();
    if (request === "ping") return undefined;
    if (this.options.host.isEnding) return NO_ANSWER;
    return this.carryOut(method, params, signal).catch((error: unknown) => {
      // What fails because everything is being closed may be done in part, or could still be done.
      if (this.options.host.isEnding) return NO_ANSWER;
      throw error;
    });
  }

  private async carryOut(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    switch (method as keyof DaemonRequests) {
      case "open":
        return this.open(params);
      case "reopen": {
        const { directory, ...reopening } = parse(method, reopened, params);
        return this.options.host.reopen(directory, reopening);
      }
      case "call":
        return this.call(params, signal);
      case "openConversation":
        return this.openConversation(parse(method, openedConversation, params));
      case "askConversation": {
        const { question: asked, ...conversation } = parse(method, question, params);
        return (await this.conversation(conversation))?.ask(asked);
      }
      case "openLink": {
        const { link, ...conversation } = parse(method, openedLink, params);
        return (await this.conversation(conversation))?.open(link);
      }
      case "findExecutable":
        return this.options.host.findExecutable(parse(method, search, params));
      case "installCommand":
        return this.options.host.installCommand(parse(method, installation, params));
      case "status":
        return this.options.host.status();
      case "diagnostics":
        return this.options.host.diagnostics();
      case "stop":
        return this.options.host.stop(parse(method, work, params).directories);
      default:
        throw new Refusal(
          "unavailable",
          sentence("The background process doesn't know the command {0}. Reload this window.", method),
        );
    }
  }

  private hear(method: string, params: unknown): void {
    if (this.admitted !== "all") return this.close();
    const notification = method as keyof WindowNotifications;
    try {
      switch (notification) {
        case "configure": {
          const { directory, settings } = parse(method, configuration, params);
          return this.folders.get(directory)?.hosted?.configure(settings);
        }
        case "close":
          return this.closeFolder(parse(method, ofFolder, params).directory);
        case "closeConversation": {
          const { directory, key } = parse(method, ofConversation, params);
          return closeConversation(this.folders.get(directory)?.conversations, key);
        }
      }
    } catch (error) {
      this.options.logger.error(`Couldn't handle ${method} from a window.`, error);
    }
  }

  private greet({ nonce, proof, protocol, ...window }: z.output<typeof hello>): Welcome {
    const { token, version, logger } = this.options;
    if (this.admitted !== "nothing" || !isProof(proof, token, "window", nonce)) throw notGreeted();
    if (protocol < PROTOCOL_VERSION) throw new OtherProtocol("window");
    logger.debug(`A window of version ${window.version} connected (process ${window.pid}).`);
    this.admitted = protocol > PROTOCOL_VERSION ? "hand-over" : "all";
    this.onAdmitted();
    if (this.admitted === "hand-over") throw new OtherProtocol("daemon");
    this.log = this.options.host.onDidLog((line) => this.wire.notify("log", line));
    return {
      proof: proofOf(token, "daemon", nonce),
      protocol: PROTOCOL_VERSION,
      version,
      pid: process.pid,
    };
  }

  private async open(params: unknown): Promise<FolderSnapshot> {
    const folder = parse("open", openFolder, params);
    const { directory } = folder;
    this.closeFolder(directory);
    const served: ServedFolder = { conversations: new Map() };
    this.folders.set(directory, served);
    const isOpen = (): boolean => this.folders.get(directory) === served;
    let hosted: HostedFolder;
    try {
      hosted = await this.options.host.open(folder);
    } catch (error) {
      if (isOpen()) this.folders.delete(directory);
      throw error;
    }
    if (!isOpen()) {
      hosted.close();
      throw notOpen(directory);
    }
    served.hosted = hosted;
    // Other windows receive the pending changes now; for this window, the snapshot includes them.
    hosted.service.flush();
    served.changes = afterAnswer(hosted.service.onDidChange, (changes) =>
      this.wire.notify("changes", { directory, changes }),
    );
    return hosted.service.snapshot();
  }

  private async call(params: unknown, signal: AbortSignal): Promise<unknown> {
    const { directory, method: name, args: given } = parse("call", call, params);
    const { service } = this.folder(directory);
    const { method, args } = parseCall(name, given);
    const calls = service.calls as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    try {
      return await calls[method]?.(...putSignal(method, args, signal));
    } finally {
      service.flush();
    }
  }

  private async openConversation({ directory, key, id }: z.output<typeof openedConversation>): Promise<void> {
    const { service, conversations } = this.folder(directory);
    closeConversation(conversations, key);
    const opening = service.openConversation(id, (message) =>
      this.wire.notify("conversation", { directory, key, message }),
    );
    conversations.set(key, opening);
    try {
      await opening;
    } catch (error) {
      if (conversations.get(key) === opening) conversations.delete(key);
      throw error;
    }
  }

  /** Undefined if the window has closed the conversation. */
  private conversation({
    directory,
    key,
  }: z.output<typeof ofConversation>): Promise<Conversation> | undefined {
    return this.folder(directory).conversations.get(key);
  }

  /** Throws a {@link Refusal} if the window has not opened the folder. */
  private folder(directory: string): Pick<ServedFolder, "conversations"> & { service: FolderService } {
    const served = this.folders.get(directory);
    if (!served?.hosted) throw notOpen(directory);
    return { service: served.hosted.service, conversations: served.conversations };
  }

  private closeFolder(directory: string): void {
    const served = this.folders.get(directory);
    this.folders.delete(directory);
    served?.changes?.dispose();
    for (const key of [...(served?.conversations.keys() ?? [])])
      closeConversation(served?.conversations, key);
    served?.hosted?.close();
  }

  private leave(): void {
    this.log?.dispose();
    for (const directory of [...this.folders.keys()]) this.closeFolder(directory);
  }
}

function closeConversation(conversations: ServedFolder["conversations"] | undefined, key: number): void {
  const closing = conversations?.get(key);
  conversations?.delete(key);
  // Whoever opened it learns of a failure.
  closing?.then((conversation) => conversation.dispose()).catch(() => undefined);
}

/**
 * Subscribes immediately, but holds back events until the current request has been answered, as the other end cannot
 * assign them earlier.
 */
function afterAnswer<T>(event: Event<T>, listener: (value: T) => void): Disposable {
  let early: T[] | undefined = [];
  const subscription = event((value) => {
    if (early) early.push(value);
    else listener(value);
  });
  const answered = setImmediate(() => {
    const values = early ?? [];
    early = undefined;
    values.forEach(listener);
  });
  return {
    dispose: () => {
      clearImmediate(answered);
      subscription.dispose();
    },
  };
}

function notGreeted(): Refusal {
  return new Refusal(
    "not-allowed",
    sentence("The background process requires its token before any other request."),
  );
}

function notOpen(directory: string): Refusal {
  return new Refusal("unavailable", sentence("This window hasn't opened the folder {0}.", directory));
}
