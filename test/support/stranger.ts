import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

/** Another program on this machine that accepts everything sent to it, and claims to be an OpenCode server. */
export interface Stranger {
  readonly url: string;
  /** Each received request, head and body. */
  readonly received: readonly string[];
  close(): void;
}

const ANSWER = JSON.stringify({ healthy: true, version: "1.18.33" });

/** Starts a stranger, on a given port if that is free. */
export async function startStranger(port = 0): Promise<Stranger> {
  const received: string[] = [];
  const server = createServer((socket) => {
    const index = received.length;
    socket.setEncoding("utf8").on("error", () => {});
    socket.on("data", (text: string) => {
      received[index] = (received[index] ?? "") + text;
      const head = ["HTTP/1.1 200 OK", "Content-Type: application/json", `Content-Length: ${ANSWER.length}`];
      socket.write([...head, "", ANSWER].join("\r\n"));
    });
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () => server.close(),
  };
}

/** Takes over a port as soon as it is free. */
export async function takePort(port: number): Promise<Stranger> {
  for (;;) {
    try {
      return await startStranger(port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
