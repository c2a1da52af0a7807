import type { Socket } from "node:net";
import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import { errorFrom } from "./failures.ts";
import { SocketMessages } from "./socket-messages.ts";
import { WireClosed } from "./wire-closed.ts";

/** The maximum number of unsent notifications. Beyond it, the other end has stopped reading and is disconnected. */
const MAX_UNSENT = 100_000;

export type ParamsOf<F> = F extends (...params: infer P) => unknown ? P : never;
export type AnswerOf<F> = F extends (...params: never[]) => infer R ? R : never;

/** Handles incoming notifications, whose contents have not been validated. */
export type Hear = (method: string, params: unknown) => void;

/**
 * One end of a connection between a window and the daemon. `Requests` and `Notifications` are what it can send to the
 * other end. Messages arrive in the order in which they are sent, including answers.
 */
export class Wire<Requests, Notifications> {
  protected readonly connection: MessageConnection;
  private unsent = 0;
  /** Resolves when either end has closed the connection. */
  readonly closed: Promise<void>;

  constructor(
    private readonly socket: Socket,
    hear: Hear,
  ) {
    const messages = new SocketMessages(socket);
    this.connection = createMessageConnection(messages, messages);
    this.connection.onNotification(hear);
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        // Rejects pending requests.
        this.connection.dispose();
        resolve();
      });
    });
    // Errors are followed by `close`.
    socket.on("error", () => undefined);
    this.connection.listen();
  }

  get isOpen(): boolean {
    return this.socket.writable;
  }

  /** Rejects with the error of the other end, or with {@link WireClosed}. */
  async request<M extends keyof Requests & string>(
    method: M,
    params: ParamsOf<Requests[M]>,
    signal?: AbortSignal,
  ): Promise<AnswerOf<Requests[M]>> {
    if (!this.isOpen) throw new WireClosed();
    const source = new CancellationTokenSource();
    const cancel = (): void => source.cancel();
    signal?.addEventListener("abort", cancel);
    if (signal?.aborted) cancel();
    try {
      const answer: unknown = await this.connection.sendRequest(method, params[0] ?? {}, source.token);
      // The other end uses the same protocol. An undefined answer arrives as null.
      return (answer ?? undefined) as AnswerOf<Requests[M]>;
    } catch (error) {
      const failure = error instanceof ResponseError ? errorFrom(error.data) : undefined;
      throw failure ?? (this.isOpen ? error : new WireClosed());
    } finally {
      signal?.removeEventListener("abort", cancel);
      source.dispose();
    }
  }

  notify<M extends keyof Notifications & string>(method: M, ...[params]: ParamsOf<Notifications[M]>): void {
    if (!this.isOpen) return;
    if (++this.unsent > MAX_UNSENT) return this.close();
    const sent = (): void => void this.unsent--;
    // Unsent messages are lost together with the connection.
    this.connection.sendNotification(method, params).then(sent, sent);
  }

  /** Closes immediately. Unsent messages are lost. */
  close(): void {
    this.socket.destroy();
  }
}
