import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * What happens to a request: it is forwarded, is never answered, its answer stops in the middle, it is redirected, or the
 * proxy answers it.
 */
type Fate = "pass" | "mute" | "cut" | { readonly redirect: string } | { readonly answer: unknown };

export interface HaltingProxy {
  readonly url: string;
  /** The method and path of each request. */
  readonly requests: readonly string[];
  /** The number of held requests that the client has given up. */
  readonly given: number;
  /** Decides about all later requests. */
  decide(fate: (request: string) => Fate): void;
  /** Breaks all open connections. */
  sever(): void;
  close(): void;
}

/** A proxy in front of a healthy server that can leave requests unanswered. */
export async function startHaltingProxy(target: string): Promise<HaltingProxy> {
  const { hostname, port } = new URL(target);
  const requests: string[] = [];
  let fate: (request: string) => Fate = () => "pass";
  let given = 0;

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse, halt: boolean): void => {
    const { method, url: path, headers } = incoming;
    const upstream = request({ hostname, port, method, path, headers }, (answer) => {
      const length = Number(answer.headers["content-length"]);
      if (!halt) {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        return void answer.pipe(outgoing);
      }
      // Announces more content than it sends.
      outgoing.writeHead(200, { ...answer.headers, "content-length": String((length || 0) + 1_000) });
      answer.on("data", (bytes: Buffer) => outgoing.write(bytes));
    });
    upstream.on("error", () => outgoing.destroy());
    outgoing.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  };

  const server = createServer((incoming, outgoing) => {
    const name = `${incoming.method} ${incoming.url}`;
    requests.push(name);
    const decided = fate(name);
    if (typeof decided === "object" && "answer" in decided)
      return void outgoing
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(decided.answer));
    if (typeof decided === "object")
      return void outgoing.writeHead(307, { location: decided.redirect + incoming.url }).end();
    if (decided !== "pass") outgoing.once("close", () => given++);
    if (decided !== "mute") forward(incoming, outgoing, decided === "cut");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get given() {
      return given;
    },
    decide: (decision) => (fate = decision),
    sever: () => server.closeAllConnections(),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
