import type { Socket } from "node:net";
import { ServerFailure } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import { encodeLine, errorFrom, readMessages, windowResponse } from "./window-protocol.ts";
import type { WindowResponse } from "./window-protocol.ts";

interface Call {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The connection of a window that reads to the one that writes. */
export class WriterLink {
  private readonly calls = new Map<number, Call>();
  private lastID = 0;
  /** Settles when the connection is closed, by whichever end. */
  readonly closed: Promise<void>;

  constructor(private readonly socket: Socket) {
    readMessages(socket, windowResponse, (response) => this.settle(response));
    // The end follows.
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.abandon();
        resolve();
      });
    });
  }

  /** Whether a call would be sent. */
  get isOpen(): boolean {
    return this.socket.writable;
  }

  /** Rejects with what the writer's side rejected with, or with `unreachable` if it closes before it answers. */
  async call(method: string, args: unknown): Promise<unknown> {
    const id = ++this.lastID;
    const line = encodeLine({ id, method, args });
    return new Promise((resolve, reject) => {
      this.calls.set(id, { method, resolve, reject });
      this.socket.write(line);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private settle({ id, result, failure }: WindowResponse): void {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (failure) call?.reject(errorFrom(failure));
    else call?.resolve(result);
  }

  private abandon(): void {
    for (const { method, reject } of this.calls.values())
      reject(
        new ServerFailure(
          method,
          "unreachable",
          sentence(
            "The window that was to carry this out closed before it answered; look at the task before trying again.",
          ),
        ),
      );
    this.calls.clear();
  }
}
