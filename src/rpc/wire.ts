import type { Socket } from "node:net";
import {
  CancellationTokenSource,
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import { messageOf } from "../engine/errors.ts";
import type { CancelSignal } from "../engine/event.ts";
import { describeError, errorFrom } from "./failures.ts";
import { WireClosed } from "./wire-closed.ts";

/** An end that stopped reading is left, before what waits to be sent takes the memory of this one. */
const MAX_UNSENT = 100_000;

export type ParamsOf<F> = F extends (...params: infer P) => unknown ? P : never;
export type AnswerOf<F> = F extends (...params: never[]) => infer R ? R : never;

/** What this end does with what comes in. Nothing of it is checked yet. */
export interface Receiver {
  /** Resolves to the answer. `signal` aborts once nobody waits for it any more. */
  answer(method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  hear(method: string, params: unknown): void;
}

/**
 * One end of a connection between a window and the daemon: `Requests` are what it may ask the other end, `Notifications`
 * what it may tell it. What is sent arrives in that order, answers included.
 */
export class Wire<Requests, Notifications> {
  private readonly connection: MessageConnection;
  /** Requests of the other end that are not answered yet. */
  private readonly answering = new Set<AbortController>();
  private unsent = 0;
  /** Resolves when the connection is closed, by whichever end. */
  readonly closed: Promise<void>;

  constructor(
    private readonly socket: Socket,
    receiver: Receiver,
  ) {
    const reader = new SocketMessageReader(socket);
    // Nobody asks how long a message takes to come in, and the reader's timer would outlive the connection.
    reader.partialMessageTimeout = 0;
    this.connection = createMessageConnection(reader, new SocketMessageWriter(socket));
    // Whoever sends what cannot be read is none of us.
    this.connection.onError(() => socket.destroy());
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
        // Rejects what waits for an answer.
        this.connection.dispose();
        for (const abort of this.answering) abort.abort();
        resolve();
      });
    });
    // The end follows.
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
      // The other end is of the same protocol. An answer of undefined is null on its way.
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
    // What could not be sent is lost with the connection.
    this.connection.sendNotification(method, params).then(sent, sent);
  }

  /** At once; what waits to be sent is lost. */
  close(): void {
    this.socket.destroy();
  }
}
