import type { Socket } from "node:net";
import {
  CancellationTokenSource,
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import { messageOf } from "../engine/errors.ts";
import type { CancelSignal } from "../engine/event.ts";
import { describeError, errorFrom } from "./failures.ts";
import { SocketMessages } from "./socket-messages.ts";
import { WireClosed } from "./wire-closed.ts";

/** The maximum number of unsent notifications. Beyond it, the other end has stopped reading and is disconnected. */
const MAX_UNSENT = 100_000;

export type ParamsOf<F> = F extends (...params: infer P) => unknown ? P : never;
export type AnswerOf<F> = F extends (...params: never[]) => infer R ? R : never;

/** Handles incoming messages, whose contents have not been validated. */
export interface Receiver {
  /** Resolves to the answer. `signal` aborts once the answer is no longer needed. */
  answer(method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  hear(method: string, params: unknown): void;
}

/**
 * One end of a connection between a window and the daemon. `Requests` and `Notifications` are what it can send to the
 * other end. Messages arrive in the order in which they are sent, including answers.
 */
export class Wire<Requests, Notifications> {
  private readonly connection: MessageConnection;
  /** Unanswered requests of the other end. */
  private readonly answering = new Set<AbortController>();
  private unsent = 0;
  /** Resolves when either end has closed the connection. */
  readonly closed: Promise<void>;

  constructor(
    private readonly socket: Socket,
    receiver: Receiver,
  ) {
    const messages = new SocketMessages(socket);
    this.connection = createMessageConnection(messages, messages);
    this.connection.onRequest(async (method, params, token) => {
      const abort = new AbortController();
      this.answering.add(abort);
      const subscription = token.onCancellationRequested(() => abort.abort());
      try {
        return await receiver.answer(method, params, abort.signal);
      } catch (error) {
        return new ResponseError(ErrorCodes.InternalError, messageOf(error), describeError(error));
      } finally {
        subscription.dispose();
        this.answering.delete(abort);
      }
    });
    this.connection.onNotification((method, params) => receiver.hear(method, params));
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        // Rejects pending requests.
        this.connection.dispose();
        for (const abort of this.answering) abort.abort();
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
    signal?: CancelSignal,
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
