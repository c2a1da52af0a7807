import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "./random.ts";

/**
 * How a network misbehaves: connections break, nothing gets through for a while, events come twice, late or in another
 * order, or connections stay open although nothing arrives any more.
 */
export type Network = "cut" | "stall" | "duplicate" | "delay" | "reorder" | "half-open";

export interface UnrulyProxy {
  readonly url: string;
  /** Misbehaves for so many milliseconds. */
  misbehave(how: Network, forMs: number): Promise<void>;
  close(): void;
}

/** Events that arrive within this time may change their order, in milliseconds. */
const REORDERED_MS = 200;
const LATEST_MS = 1_500;
/** How many requests reach the server although their answers don't arrive, while connections are half-open. */
const CARRIED_OUT = 0.5;

/** A proxy in front of a healthy server, between well-behaved and unruly. */
export async function startUnrulyProxy(target: string, random: Random): Promise<UnrulyProxy> {
  const { hostname, port } = new URL(target);
  let mode: Network | "well" = "well";
  let over: Promise<unknown> = Promise.resolve();

  /** Passes an answer on, or its events one by one. */
  async function pass(answer: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    if (!answer.headers["content-type"]?.includes("event-stream")) {
      for await (const bytes of answer) {
        if (mode === "stall") await over;
        if (mode !== "half-open") outgoing.write(bytes);
      }
      return void outgoing.end();
    }
    let text = "";
    for await (const bytes of answer.setEncoding("utf8")) {
      const events = `${text}${bytes as string}`.split("\n\n");
      text = events.pop() ?? "";
      if (mode === "stall") await over;
      for (const event of events) send(`${event}\n\n`, outgoing);
    }
    outgoing.end();
  }

  function send(event: string, outgoing: ServerResponse): void {
    const write = (): void => void (outgoing.destroyed || outgoing.write(event));
    if (mode === "half-open") return;
    if (mode === "delay") return void setTimeout(write, LATEST_MS);
    if (mode === "reorder") return void setTimeout(write, random.between(0, REORDERED_MS));
    write();
    if (mode === "duplicate") write();
  }

  const server = createServer((incoming, outgoing) => {
    void (async () => {
      if (mode === "stall") await over;
      if (mode === "half-open" && !random.chance(CARRIED_OUT)) return;
      const { method, url: path, headers } = incoming;
      const upstream = request({ hostname, port, method, path, headers }, (answer) => {
        pass(answer, outgoing).catch(() => outgoing.destroy());
      });
      upstream.on("error", () => outgoing.destroy());
      outgoing.on("close", () => upstream.destroy());
      incoming.pipe(upstream);
    })();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async misbehave(how, forMs) {
      mode = how;
      if (how === "cut") server.closeAllConnections();
      over = delay(how === "cut" ? 0 : forMs);
      await over;
      mode = "well";
      // What was swallowed must not look like a healthy connection afterwards.
      if (how === "half-open") server.closeAllConnections();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
