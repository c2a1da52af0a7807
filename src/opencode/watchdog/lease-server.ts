import { rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { encodeMessage, readHostMessages } from "./lease-protocol.ts";
import type { HostMessage, WatchdogMessage } from "./lease-protocol.ts";

/** Another watchdog answers on the socket. */
export class AlreadyServed extends Error {
  override readonly name = "AlreadyServed";
}

export interface LeaseListener {
  /** What a new lease is told first, and any that asks. */
  status(): WatchdogMessage;
  onStop(): void;
  /** A lease needs the server no more; it counts until it is given back. */
  onDone(): void;
  /** A lease was taken or given back. */
  onCount(): void;
}

/** Where extension hosts take their leases: each holds one connection open for as long as it uses the server. */
export class LeaseServer {
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly listener: LeaseListener,
  ) {
    server.on("connection", (socket) => this.accept(socket));
  }

  /** Throws {@link AlreadyServed} if somebody listens there already. */
  static async listen(path: string, listener: LeaseListener): Promise<LeaseServer> {
    try {
      return new LeaseServer(await listenOn(path), listener);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
    if (await answers(path)) throw new AlreadyServed(`Another watchdog listens on ${path}.`);
    // A watchdog that was killed leaves its socket behind.
    await rm(path, { force: true });
    return new LeaseServer(await listenOn(path), listener);
  }

  get count(): number {
    return this.sockets.size;
  }

  broadcast(message: WatchdogMessage): void {
    for (const socket of this.sockets) socket.write(encodeMessage(message));
  }

  /** Takes no lease any more (the socket is gone when this returns); those that are open stay. */
  refuse(): void {
    this.server.close();
  }

  /** Ends every lease once what was said has been delivered. */
  close(): void {
    for (const socket of this.sockets) socket.end();
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.setEncoding("utf8");
    socket.on(
      "data",
      readHostMessages((message) => this.hear(message, socket)),
    );
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.sockets.delete(socket);
      this.listener.onCount();
    });
    this.tell(socket);
    this.listener.onCount();
  }

  private hear({ type }: HostMessage, socket: Socket): void {
    switch (type) {
      case "stop":
        return this.listener.onStop();
      case "done":
        return this.listener.onDone();
      case "ask":
        return this.tell(socket);
    }
  }

  private tell(socket: Socket): void {
    socket.write(encodeMessage(this.listener.status()));
  }
}

function listenOn(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve(server);
    });
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
