import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { callEndpoint, type Outcome, type SilenceLimits } from "../../../src/plugin/call-endpoint.ts";

describe("Asking one endpoint", () => {
  const brief: SilenceLimits = { untakenMs: 50, takenMs: 50 };
  /** For endpoints that answer: how soon depends on the machine. */
  const patient: SilenceLimits = { untakenMs: 5_000, takenMs: 50 };

  async function ask(serve: (socket: Socket) => void, silence = brief): Promise<Outcome> {
    const listener = createServer((socket) => serve(socket.on("error", () => undefined)));
    await once(listener.listen(0, "127.0.0.1"), "listening");
    const { port } = listener.address() as AddressInfo;
    try {
      return await callEndpoint(
        { port, token: "secret" },
        { path: "/", body: "{}" },
        new AbortController().signal,
        silence,
      );
    } finally {
      listener.close();
    }
  }

  /** Asks an endpoint that sends this and then falls silent. */
  const askOneThatSays = (text: string, silence = brief): Promise<Outcome> =>
    ask((socket) => void socket.write(text), silence);

  const kindOf = async (outcome: Promise<Outcome>): Promise<Outcome["kind"]> => (await outcome).kind;

  it("gives up on an endpoint that falls silent after it accepted the call", async () => {
    assert.equal(await kindOf(askOneThatSays("HTTP/1.1 200 OK\r\n\r\n\n\n", patient)), "broken");
  });

  it("gives up earlier on an endpoint that has not accepted the call", async () => {
    const silence = { untakenMs: 50, takenMs: 600_000 };
    assert.deepEqual(await askOneThatSays("", silence), { kind: "unreachable" });
    const rejection = "HTTP/1.1 401 Unauthorized\r\n\r\n";
    assert.deepEqual(await askOneThatSays(rejection, { ...silence, untakenMs: 2_500 }), {
      kind: "rejected",
      status: 401,
    });
  });

  it("allows a longer silence to an endpoint that has accepted the call", async () => {
    const reply = '{"type":"refused","message":"No."}\n';
    const outcome = ask(
      (socket) => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        setTimeout(() => socket.end(reply), 3_000);
      },
      { untakenMs: 2_500, takenMs: 600_000 },
    );
    assert.equal(await kindOf(outcome), "reply");
  });

  it("reports how long an endpoint had the call, from when it accepted it", async () => {
    const askedAt = performance.now();
    const outcome = await ask(
      (socket) => void setTimeout(() => socket.write("HTTP/1.1 200 OK\r\n\r\n"), 200),
      {
        untakenMs: 600_000,
        takenMs: 100,
      },
    );
    const elapsed = performance.now() - askedAt;
    assert.ok(outcome.kind === "broken");
    assert.ok(outcome.heldMs >= 50, `${outcome.heldMs}`);
    assert.ok(elapsed - outcome.heldMs >= 195, `${outcome.heldMs} of ${elapsed}`);
  });

  it("does not count a call as accepted before the head of the answer is complete", async () => {
    assert.deepEqual(await askOneThatSays(""), { kind: "unreachable" });
    assert.deepEqual(await askOneThatSays("HTTP/1.1 200 OK\r\n"), { kind: "unreachable" });
  });

  it("treats an answer that isn't HTTP as unreachable", async () => {
    assert.deepEqual(await askOneThatSays("SSH-2.0-OpenSSH_9.6\r\n\r\n"), { kind: "unreachable" });
  });

  it("treats an invalid reply as a broken connection", async () => {
    const outcome = askOneThatSays('HTTP/1.1 200 OK\r\n\r\n{"type":"result","title":"No text"}\n', patient);
    assert.equal(await kindOf(outcome), "broken");
  });
});
