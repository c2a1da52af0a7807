import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import type { Socket } from "node:net";
import type { Message } from "vscode-jsonrpc/node";
import { SocketMessages } from "../../../src/rpc/socket-messages.ts";

describe("messages on a socket", () => {
  const read: unknown[] = [];
  let stream: PassThrough;
  let messages: SocketMessages;

  beforeEach(() => {
    read.length = 0;
    stream = new PassThrough();
    stream.on("error", () => undefined);
    messages = new SocketMessages(stream as unknown as Socket);
  });

  function listen(): void {
    messages.listen((message) => read.push(message));
  }

  function sent(...contents: readonly string[]): Buffer {
    return Buffer.from(
      contents.map((text) => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`).join(""),
    );
  }

  it("are read as they were written, in order", async () => {
    const written = [
      { jsonrpc: "2.0", text: "ä\u2028\r\n\r\n😀", list: [1, null] },
      { jsonrpc: "2.0", text: "x".repeat(1_000_000) },
      { jsonrpc: "2.0" },
    ] as unknown as Message[];
    listen();
    await Promise.all(written.map((message) => messages.write(message)));
    assert.deepEqual(read, written);
  });

  it("may arrive in any pieces", () => {
    const data = sent('{"text":"ä😀"}', "[]", '{"other":1}');
    for (const size of [1, 2, 7, 31, data.length]) {
      read.length = 0;
      stream = new PassThrough();
      messages = new SocketMessages(stream as unknown as Socket);
      listen();
      for (let at = 0; at < data.length; at += size) stream.emit("data", data.subarray(at, at + size));
      assert.deepEqual(read, [{ text: "ä😀" }, [], { other: 1 }], `pieces of ${size}`);
    }
  });

  it("are read with further lines in the header, in any case", () => {
    listen();
    stream.emit("data", Buffer.from("Content-Type: text\r\ncontent-length: 2\r\n\r\n{}"));
    assert.deepEqual(read, [{}]);
  });

  for (const [what, data] of [
    ["isn't JSON", sent("{")],
    ["has no length", Buffer.from("Length: 2\r\n\r\n{}")],
    ["has a length with a unit", Buffer.from("Content-Length: 2 bytes\r\n\r\n{}")],
    ["has another length", Buffer.from("X-Content-Length: 2\r\n\r\n{}")],
    ["has no end of its header", Buffer.from("x".repeat(1_001))],
  ] as const)
    it(`close the socket if one ${what}`, () => {
      listen();
      stream.emit("data", data);
      assert.ok(stream.destroyed);
      assert.deepEqual(read, []);
    });

  it("can't be written to a closed socket", async () => {
    stream.destroy();
    await assert.rejects(messages.write({ jsonrpc: "2.0" }));
  });
});
