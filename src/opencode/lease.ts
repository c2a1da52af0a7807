import { connect } from "node:net";
import type { Socket } from "node:net";
import { encodeMessage, readWatchdogMessages } from "./watchdog/lease-protocol.ts";
import type { WatchdogMessage } from "./watchdog/lease-protocol.ts";

/** An extension host's hold on a watchdog's server: the server stays while one is open. */
export class Lease {
  /** Told of what the watchdog says; messages that came before it was set are told then. */
  private listener: ((message: WatchdogMessage) => void) | undefined;
  private readonly unheard: WatchdogMessage[] = [];
  /** Settles when the connection is closed, by whichever end. */
  readonly closed: Promise<void>;

  private constructor(private readonly socket: Socket) {
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.setEncoding("utf8");
    socket.on("error", () => socket.destroy());
    socket.on(
      "data",
      readWatchdogMessages((message) => {
        if (this.listener) this.listener(message);
        else this.unheard.push(message);
      }),
    );
  }

  /** Undefined: no watchdog listens there. */
  static open(path: string): Promise<Lease | undefined> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      socket.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
        else reject(error);
      });
      socket.once("connect", () => {
        socket.removeAllListeners("error");
        resolve(new Lease(socket));
      });
    });
  }

  listen(listener: (message: WatchdogMessage) => void): void {
    this.listener = listener;
    for (const message of this.unheard.splice(0)) listener(message);
  }

  /** Asks the watchdog to say again how its server is. */
  ask(): void {
    this.socket.write(encodeMessage({ type: "ask" }));
  }

  /** Asks for the end of the server, whoever else uses it. */
  requestStop(): void {
    this.socket.write(encodeMessage({ type: "stop" }));
  }

  /** Asks for the end of the server unless somebody else uses it, and gives the lease back. */
  finish(): void {
    this.socket.end(encodeMessage({ type: "done" }));
  }

  release(): void {
    this.socket.destroy();
  }
}
