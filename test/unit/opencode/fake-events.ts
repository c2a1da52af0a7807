import { once } from "node:events";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ServerAccess } from "../../../src/opencode/access.ts";

/** A server whose event stream sends and pauses on demand, for what happens too rarely in reality. */
export class FakeEvents {
  readonly connections: ServerResponse[] = [];
  answering = true;
  private constructor(private readonly server: Server) {
    server.on("request", ({ url }, response) => {
      if (url !== "/global/event") return void response.writeHead(404).end();
      this.connections.push(response);
      if (!this.answering) return;
      response.writeHead(200, { "content-type": "text/event-stream" });
      this.send(response, { type: "server.connected" });
    });
  }
  static async start() {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FakeEvents(server);
  }
  get access(): ServerAccess {
    const { port } = this.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, username: "opencode" };
  }
  /** Without a directory, the event is of the server itself. */
  send(response: ServerResponse | undefined, payload: { type: string }, directory?: string) {
    response?.write(`data: ${JSON.stringify({ directory, payload })}\n\n`);
  }
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
