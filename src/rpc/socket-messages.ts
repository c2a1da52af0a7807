import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { DataCallback, Disposable, Message, MessageReader, MessageWriter } from "vscode-jsonrpc/node";

const HEADER_END = "\r\n\r\n";
/** In bytes. A longer one is not ours. */
const MAX_HEADER = 1_000;

/** Events of readers and writers that are not used here, because the socket has its own. */
const never = (): Disposable => ({ dispose: () => undefined });

/**
 * Reads and writes the messages of a socket: JSON after a header with its length. The package's own reader and writer
 * convert each message in several asynchronous steps, for encodings that are not used here.
 */
export class SocketMessages implements MessageReader, MessageWriter {
  readonly onClose = never;
  readonly onError = never;
  readonly onPartialMessage = never;
  /** What has arrived and was not read yet. */
  private chunks: Buffer[] = [];
  private length = 0;
  /** The length that is needed for reading further. */
  private needed = 1;

  constructor(private readonly socket: Socket) {}

  listen(callback: DataCallback): Disposable {
    this.socket.on("data", (chunk: Buffer) => {
      try {
        this.take(chunk, callback);
      } catch (error) {
        // Unreadable data means that the other end is not ours.
        this.socket.destroy(error as Error);
      }
    });
    return never();
  }

  /** Resolves once the message is handed to the system. */
  async write(message: Message): Promise<void> {
    const content = JSON.stringify(message);
    const header = `Content-Length: ${Buffer.byteLength(content)}${HEADER_END}`;
    await new Promise<void>((resolve, reject) =>
      this.socket.write(header + content, (error) => (error ? reject(error) : resolve())),
    );
  }

  end(): void {
    this.socket.end();
  }

  dispose(): void {
    this.chunks = [];
  }

  private take(chunk: Buffer, callback: DataCallback): void {
    this.chunks.push(chunk);
    this.length += chunk.length;
    // Joins the chunks of a long message only once.
    if (this.length < this.needed) return;
    let data = Buffer.concat(this.chunks);
    for (;;) {
      const [start, end] = nextContent(data);
      this.needed = end;
      if (data.length < end) break;
      callback(JSON.parse(data.toString("utf8", start, end)) as Message);
      data = data.subarray(end);
    }
    this.chunks = [data];
    this.length = data.length;
  }
}

/** Where the content of the first message starts and ends. Before the header is complete, only the next byte. */
function nextContent(data: Buffer): readonly [start: number, end: number] {
  const headerEnd = data.indexOf(HEADER_END);
  if (headerEnd < 0 && data.length < MAX_HEADER) return [0, data.length + 1];
  const start = headerEnd + HEADER_END.length;
  const [, length] = /^Content-Length: (\d+)$/im.exec(data.toString("latin1", 0, headerEnd)) ?? [];
  if (length === undefined) throw new Error("A message has no length.");
  return [start, start + Number(length)];
}
