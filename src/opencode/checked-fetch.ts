import { once } from "node:events";
import { Agent, request, type ClientRequest, type ClientRequestArgs, type IncomingMessage } from "node:http";
import { connect, type Socket, type TcpNetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";

/** After how many milliseconds an unused connection is closed. */
const IDLE_MS = 4_000;
/** Statuses of responses that have no body. */
const BODILESS = [204, 205, 304];

/**
 * Like `fetch`, for a server of this machine whose port another program takes if it ends. Nothing is sent over a
 * connection before `isOwn`, asked after the connection was made, has said that the server listens there: then it is
 * connected with the server, even if that ends at this moment. If it rejects, so does the call. Redirects are not followed.
 */
export function checkedFetch(isOwn: () => Promise<boolean>): typeof fetch {
  const agent = new CheckedAgent(isOwn);
  return async (input, init) => {
    const sent = new Request(input, init);
    const { url, method, headers, signal } = sent;
    const body = sent.body ? Buffer.from(await sent.arrayBuffer()) : undefined;
    signal.throwIfAborted();
    try {
      const call = request(url, { agent, method, headers: Object.fromEntries(headers), signal });
      return responseOf(await answerTo(call, body));
    } catch (cause) {
      signal.throwIfAborted();
      throw new TypeError("fetch failed", { cause });
    }
  };
}

class CheckedAgent extends Agent {
  constructor(private readonly isOwn: () => Promise<boolean>) {
    super({ keepAlive: true, timeout: IDLE_MS });
  }

  override createConnection(
    options: ClientRequestArgs,
    callback: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    this.open(options as TcpNetConnectOpts).then(
      (socket) => callback(null, socket),
      // In case of an error, the socket is not used.
      (error: Error) => callback(error, undefined as unknown as Duplex),
    );
  }

  private async open(options: TcpNetConnectOpts): Promise<Socket> {
    const socket = connect(options);
    await once(socket, "connect");
    // Until a request takes the socket, nobody else listens for its errors.
    socket.on("error", () => undefined);
    let isOwn = false;
    try {
      isOwn = (await this.isOwn()) && !socket.destroyed;
    } finally {
      if (!isOwn) socket.destroy();
    }
    if (isOwn) return socket;
    // For callers the same as a port on which nobody listens.
    throw Object.assign(new Error("the server has ended"), { code: "ECONNREFUSED" });
  }
}

async function answerTo(call: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    call.once("response", resolve).on("error", reject);
  });
  call.end(body);
  return answered;
}

function responseOf(message: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = "", headers } = message;
  if (BODILESS.includes(status)) message.resume();
  return new Response(BODILESS.includes(status) ? null : streamOf(message), {
    status,
    statusText,
    headers: headers as Record<string, string>,
  });
}

function streamOf(message: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = message.iterator() as AsyncIterator<Uint8Array<ArrayBuffer>, undefined>;
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (cause) {
        throw new TypeError("terminated", { cause });
      }
    },
    cancel: () => void message.destroy(),
  });
}
