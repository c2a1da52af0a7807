import type { Socket } from "node:net";
import { ErrorCodes, ResponseError } from "vscode-jsonrpc/node";
import { messageOf } from "../engine/errors.ts";
import { describeError } from "./failures.ts";
import { Wire, type Hear } from "./wire.ts";

/**
 * Answers requests, whose contents have not been validated. `signal` aborts once the answer is no longer needed.
 */
export type Answer = (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;

/** The daemon's end of a connection: only windows and plugins make requests. */
export class AnsweringWire<Notifications> extends Wire<never, Notifications> {
  /** Unanswered requests of the other end. */
  private readonly answering = new Set<AbortController>();

  constructor(socket: Socket, hear: Hear, answer: Answer) {
    super(socket, hear);
    this.connection.onRequest(async (method, params, token) => {
      const abort = new AbortController();
      this.answering.add(abort);
      const subscription = token.onCancellationRequested(() => abort.abort());
      try {
        return await answer(method, params, abort.signal);
      } catch (error) {
        return new ResponseError(ErrorCodes.InternalError, messageOf(error), describeError(error));
      } finally {
        subscription.dispose();
        this.answering.delete(abort);
      }
    });
    socket.once("close", () => {
      for (const abort of this.answering) abort.abort();
    });
  }
}
