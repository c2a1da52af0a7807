import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { readEntries } from "../../src/bridge/endpoint-entries.ts";
import { TOOL_CALL_PATH, toolReply, type ToolCall } from "../../src/bridge/tool-call.ts";
import { ToolEndpoint } from "../../src/bridge/tool-endpoint.ts";
import { runOf } from "../../src/tools/runs.ts";
import { realClock } from "../support/engine.ts";
import { settled } from "../support/manual-clock.ts";
import { tempDir } from "../support/temp.ts";
import { ToolWindow } from "../unit/tools/tool-window.ts";
import { DEEP_JSON, hostileJson, hostileText, spoiled } from "./hostile.ts";
import { TOOL_CALLS } from "./samples.ts";
import type { OpenTarget, Target } from "./target.ts";

/** Longer than any call may wait, in milliseconds. */
const LONGEST_WAIT = 601_000;

/** Each call over HTTP is answered with a result or with one sentence; the tasks of another session stay as they are. */
export const toolCalls: Target = {
  name: "tool-calls",
  async open(): Promise<OpenTarget> {
    const window = await ToolWindow.open();
    const witness = await window.launch({ parent: await window.otherSession() });
    const own = await window.launch();
    const errors: string[] = [];
    const stateFolder = join(tempDir("fuzz"), "state");
    let isWaiting = false;
    const endpoint = new ToolEndpoint({
      stateFolder,
      directories: ["/work"],
      server: "http://127.0.0.1:1",
      handle: async (call, signal) => {
        isWaiting = true;
        try {
          return await carryOut(window, call, signal);
        } finally {
          isWaiting = false;
        }
      },
      beginWrite: async () => true,
      clock: realClock,
      logger: {
        debug() {},
        info() {},
        warn() {},
        error: (message, error) => errors.push(`${message} ${String(error)}`),
      },
    });
    await endpoint.open();
    const [entry] = await readEntries(stateFolder);
    assert.ok(entry);
    const headers = { authorization: `Bearer ${entry.token}`, "content-type": "application/json" };
    const samples = JSON.parse(
      JSON.stringify(TOOL_CALLS).replaceAll("ses_1", window.parent).replaceAll("abc123", own.id),
    ) as readonly object[];
    const inputs = samples.map((sample) => (sample as ToolCall).input);
    const call = fc.oneof(
      {
        arbitrary: fc
          .tuple(fc.constantFrom(...samples), fc.oneof(spoiled(...inputs), hostileJson))
          .map(([sample, input]) => ({ ...sample, input })),
        weight: 6,
      },
      { arbitrary: spoiled(...samples), weight: 3 },
      hostileJson,
    );
    const deep = fc.constantFrom(
      ...samples.map((sample) => `${JSON.stringify(sample).slice(0, -1)},${DEEP_JSON.slice(1)}`),
    );
    const body = fc.oneof(
      { arbitrary: call.map((value) => JSON.stringify(value)), weight: 20 },
      hostileText,
      deep,
    );

    async function post(sent: string): Promise<void> {
      const client = request({
        port: entry?.port,
        host: "127.0.0.1",
        path: TOOL_CALL_PATH,
        method: "POST",
        headers,
      });
      client.end(sent);
      const [response] = (await once(client, "response")) as [IncomingMessage];
      const answer = await text(response);
      if (response.statusCode === 200) check(toolReply.parse(JSON.parse(answer)));
      else assert.match(`${response.statusCode} ${answer}`, /^(400|413) [A-Z].+\.$/);
    }

    return {
      property: fc.asyncProperty(body, async (sent) => {
        errors.length = 0;
        let isAnswered = false;
        const answered = Promise.allSettled([post(sent)]).then(([outcome]) => {
          isAnswered = true;
          return outcome;
        });
        for (let turns = 0; !isAnswered; turns++) {
          await settled();
          if (isWaiting && turns % 100 === 99) await window.clock.advance(LONGEST_WAIT);
        }
        const outcome = await answered;
        if (outcome.status === "rejected") throw outcome.reason;
        assert.deepEqual(errors, []);
        assert.equal(window.task(witness.id).status, "running");
      }),
      close() {
        endpoint.dispose();
        window.dispose();
      },
    };
  },
};

function carryOut(window: ToolWindow, { tool, input, ...place }: ToolCall, signal: AbortSignal) {
  return runOf(tool)(input, {
    // Calls of any other session would find nothing.
    caller: { ...place, sessionID: window.parent, by: "agent" },
    known: window.engine,
    commands: window.commands,
    signal,
    now: () => window.clock.now(),
  });
}

function check(reply: ReturnType<typeof toolReply.parse>): void {
  if (reply.type === "result") return assert.match(reply.text, /\S/);
  assert.ok(reply.type !== "not-ours");
  assert.match(reply.message, /^[^\n]+\.$/);
  assert.doesNotMatch(reply.message, /failed inside Async Agents/);
}
