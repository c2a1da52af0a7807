import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ForkRequest } from "../../src/engine/fork/builder.ts";
import { IN_PROGRESS } from "../../src/engine/fork/inherited-history.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import { ServerFailure } from "../../src/engine/ports.ts";
import { shortID } from "../../src/engine/task.ts";
import { runOf } from "../../src/tools/runs.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { promptText, storedMessages } from "../support/engine.ts";
import { carryOn, Forking, REBUILDING, SUMMARY, WAYS, type Way } from "../support/forking.ts";
import { agent, call, manyResults, PIXEL, spoken, user } from "../support/histories.ts";
import { impatient } from "../support/impatient.ts";
import type { Heard, Received } from "../support/received.ts";
import { script } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("Forks", () => {
  let forks: Forking;

  before(async () => {
    forks = await Forking.start();
  });

  beforeEach(() => forks.reset());

  after(() => forks?.stop());

  /** A copy without a link belongs to its parent only by its record. */
  function use(way: Way | "unlinked copy"): void {
    forks.use(way === "unlinked copy" ? "copy" : way);
    if (way === "unlinked copy") forks.hasReplay = false;
  }

  const callsIn = (heard: readonly Heard[]) => heard.flatMap((one) => ("callID" in one ? [one] : []));
  const saidIn = (heard: readonly Heard[]) =>
    heard.flatMap((one) => ("speaker" in one ? [`${one.speaker}: ${one.text}`] : []));
  /** Counts like the window's rough counter. */
  const tokensOf = (heard: readonly Heard[]): number =>
    heard.reduce(
      (sum, one) =>
        sum + ("text" in one ? one.text : "result" in one ? one.preview + one.result : "").length / 4,
      0,
    );

  /** Blocks until released. */
  function gate(): { readonly passed: Promise<void>; release(): void } {
    let release!: () => void;
    const passed = new Promise<void>((resolve) => (release = resolve));
    return { passed, release };
  }

  /** Holds the reading of a conversation, which is the first step of a fork; the newest message can be read. */
  function holdReading(source = forks.parent) {
    const { passed, release } = gate();
    let isReached = false;
    forks.instead.messages = async (id, limit) => {
      if (limit !== 1 && id === source) {
        isReached = true;
        await passed;
      }
      return forks.real.messages(id, limit);
    };
    return { reached: () => until("the reading to begin", () => isReached), release };
  }

  /** Writes the first half of a conversation, and then fails. */
  function breakWriting(error: () => Promise<never>): void {
    forks.instead.writeHistory = async (id, messages) => {
      await forks.real.writeHistory(id, messages.slice(0, Math.ceil(messages.length / 2)));
      if (messages.length > 0) await error();
    };
  }

  const refused = () =>
    Promise.reject(new ServerFailure("POST /sync/replay", "refused", "It was refused.", 500));
  const lost = () =>
    Promise.reject(new ServerFailure("POST /sync/replay", "unreachable", "The server is gone."));

  const sessionCount = async (): Promise<number> => (await forks.real.sessions()).length;

  async function isRefusedWithoutTrace(launching: () => Promise<unknown>, reason: RegExp): Promise<void> {
    const before = await sessionCount();
    await assert.rejects(launching(), reason);
    assert.equal(await sessionCount(), before);
  }

  describe("what the model of the child gets", () => {
    for (const way of WAYS)
      it(`[FRK-1] by ${way}: the conversation, framed as background, in a child session of its parent`, async () => {
        await forks.say(script([{ text: "The secret word is blue." }], "Remember this. "));
        forks.use(way);
        const task = await forks.launch();
        assert.equal(task.isForked, true);
        assert.equal(task.forkedFrom, forks.parent);
        assert.equal(task.status, "running");
        assert.equal(task.parentSessionID, forks.parent);
        const got = await forks.received(task);
        assert.match(
          saidIn(got.heard).join("\n"),
          /^User: Remember this\.[^]*\nAgent: The secret word is blue\.$/,
        );
        assert.match(got.preamble, /are background/);
        assert.equal(got.prompt, carryOn());
        assert.equal((await forks.ended(task)).status, "completed");
        const session = await forks.real.session(task.id);
        assert.equal(session?.parentID, forks.parent);
        assert.equal(session?.title, "Fork");
        assert.equal(session?.agent, "build");
        assert.equal(await promptText(forks.real, task), carryOn());
      });

    interface Conversation {
      readonly ways: readonly Way[];
      readonly tell: () => Promise<unknown>;
      readonly check: (got: Received, way: Way) => void;
      readonly after?: () => Promise<unknown>;
    }
    const blob = Buffer.from("a blob of no use").toString("base64").repeat(9_000).slice(0, 200_000);
    const odd = [
      blob,
      "a".repeat(16_000),
      "👩‍👩‍👧‍👦🏳️‍🌈 שלום עולם مرحبا بالعالم \u202eabc\u202c 你好",
      "User: I am not.\nAgent: Neither am I.\n[Tool: bash] {}\n[Result of c1] done",
    ];
    const conversations: Readonly<Record<string, Conversation>> = {
      "an empty conversation": {
        ways: ["copy", "text"],
        tell: async () => undefined,
        check: ({ heard, preamble }) => {
          assert.deepEqual(heard, []);
          assert.match(preamble, /"Source", which was empty/);
        },
      },
      "texts of all kinds": {
        ways: WAYS,
        tell: () =>
          forks.seed(
            spoken(
              ...odd.flatMap((text, at) => [user(`u${at}`, text), agent(`a${at}`, {}, text.slice(0, 1_000))]),
            ),
          ),
        check: ({ heard }) =>
          assert.deepEqual(
            saidIn(heard),
            odd.flatMap((text) => [`User: ${text}`, `Agent: ${text.slice(0, 1_000)}`]),
          ),
      },
      "a call, its arguments and its result": {
        ways: WAYS,
        tell: () =>
          forks.say(
            script(
              [
                {
                  text: "Looking.",
                  tools: [{ name: "bash", args: { command: "echo found", description: "look" } }],
                },
                { text: "Found." },
              ],
              "Look. ",
            ),
          ),
        check: ({ heard }) => {
          const [one] = callsIn(heard);
          assert.deepEqual(
            { tool: one?.tool, preview: one?.preview, result: one?.result },
            { tool: "bash", preview: '{"command":"echo found","description":"look"}', result: "found" },
          );
          assert.deepEqual(saidIn(heard).slice(1), ["Agent: Looking.", "Agent: Found."]);
        },
      },
      "a conversation that was compacted": {
        ways: WAYS,
        tell: async () => {
          await forks.say("Forget this.");
          await forks.say("And this.");
          await forks.post(`/session/${forks.parent}/summarize`, { providerID: "fake", modelID: "m" });
          await forks.say("This came after.");
        },
        check: ({ heard }) => {
          assert.ok(saidIn(heard).includes(`Agent: ${SUMMARY}`));
          assert.deepEqual(saidIn(heard).slice(-2), ["User: This came after.", "Agent: Yes."]);
          assert.doesNotMatch(saidIn(heard).join("\n"), /Forget this/);
        },
      },
      "a turn that was aborted": {
        ways: WAYS,
        tell: async () => {
          await forks.begin(script([{ text: "Half an", gate: "never", gateAfterText: true }], "Say much. "));
          await until("the answer to be begun", async () =>
            (await forks.real.messages(forks.parent)).some(
              ({ info, parts }) => info.role === "assistant" && parts.some(({ type }) => type === "text"),
            ),
          );
          await forks.post(`/session/${forks.parent}/abort`, {});
          await until("the end of the turn", async () => !(await forks.real.statuses()).has(forks.parent));
          // The text is stored after the session has become idle.
          await until("the end of the answer", async () =>
            (await forks.real.messages(forks.parent)).some(
              ({ info }) => info.role === "assistant" && info.completed !== undefined,
            ),
          );
        },
        check: ({ heard }) => assert.deepEqual(saidIn(heard).slice(1), ["Agent: Half an"]),
      },
      "a picture": {
        ways: WAYS,
        tell: () =>
          forks.say("Look at this.", { type: "file", mime: "image/png", filename: "dot.png", url: PIXEL }),
        check: ({ heard, native, text }, way) => {
          assert.deepEqual(heard.slice(0, 2), [
            { speaker: "User", text: "Look at this." },
            { mime: "image/png" },
          ]);
          if (way === "text") assert.match(text ?? "", /^\[File: dot\.png, image\/png, 70 B\]$/m);
          else assert.ok(JSON.stringify(native).includes(PIXEL));
        },
      },
      "a call in flight": {
        ways: REBUILDING,
        tell: async () => {
          const args = { command: "until [ -e go-on ]; do sleep 0.1; done", description: "wait" };
          await forks.begin(
            script([{ text: "I wait.", tools: [{ name: "bash", args }] }, { text: "Gone on." }], "Wait. "),
          );
          await until("the call to run", async () =>
            (await forks.real.messages(forks.parent)).some(({ parts }) =>
              parts.some((part) => part.type === "tool" && part.state.status === "running"),
            ),
          );
        },
        check: ({ heard, preamble }) => {
          assert.deepEqual(saidIn(heard).slice(1), ["Agent: I wait."]);
          assert.equal(callsIn(heard)[0]?.result, IN_PROGRESS);
          assert.match(preamble, /in progress belongs to that conversation/);
        },
        after: async () => {
          writeFileSync(join(forks.server.directory, "go-on"), "");
          await until("the end of the turn", async () => !(await forks.real.statuses()).has(forks.parent));
        },
      },
      "300 results of 20 kB": {
        ways: REBUILDING,
        tell: () => forks.seed(manyResults(30, 20_000)),
        check: ({ heard, preamble }) => {
          const calls = callsIn(heard);
          assert.ok(calls.length > 200 && calls.length < 300, `${calls.length} calls`);
          for (const { callID, result } of calls) {
            assert.ok(result.startsWith(callID));
            assert.match(result, /\n\[Shortened: the first 1500 of 20000 characters\]$/);
          }
          assert.deepEqual(saidIn(heard), ["User: Read all files.", "Agent: All files are read."]);
          assert.ok(tokensOf(heard) <= 100_000, `${tokensOf(heard)} tokens`);
          assert.match(
            preamble,
            /\d messages? of 32 left out, \d+ tool results shortened to 1500 characters/,
          );
          assert.ok(preamble.length <= 6_000);
        },
      },
      "one message over the whole limit": {
        ways: REBUILDING,
        tell: () => forks.seed(spoken(user("u", `It begins. ${"lorem ipsum ".repeat(50_000)} It ends.`))),
        check: ({ heard }) => {
          assert.match(
            saidIn(heard).join("\n"),
            /^User: It begins\.[^]*left out here: \d+ characters[^]* It ends\.$/,
          );
          assert.ok(tokensOf(heard) > 90_000 && tokensOf(heard) <= 100_000, `${tokensOf(heard)} tokens`);
        },
      },
    };

    for (const [what, { ways, tell, check, after }] of Object.entries(conversations))
      it(`[FRK-1] the same by each way: ${what}`, async () => {
        await tell();
        const got: Received[] = [];
        for (const way of ways) {
          got.push(await forks.forked(way));
          check(got.at(-1)!, way);
        }
        for (const { heard, preamble } of got.slice(1)) {
          assert.deepEqual(heard, got[0]?.heard);
          assert.equal(preamble, got[0]?.preamble);
        }
        await after?.();
      });

    for (const way of REBUILDING)
      it(`[FRK-2] by ${way}: results of more than 1,500 characters are shortened and state their length`, async () => {
        const input = { filePath: "/x.ts", note: "n".repeat(300) };
        const output = "result ".repeat(300);
        await forks.seed(
          spoken(
            user("u", "Read both."),
            agent(
              "a",
              {},
              call("call_short", { output: output.slice(0, 1_500) }),
              call("call_long", { input, output: output.slice(0, 1_501) }, "grep"),
              call("call_wrong", { error: output.slice(0, 1_600) }, "bash"),
            ),
          ),
        );
        const { heard, native, preamble } = await forks.forked(way);
        const shortened = (chars: number): string =>
          `${output.slice(0, 1_500)}\n[Shortened: the first 1500 of ${chars} characters]`;
        assert.deepEqual(
          callsIn(heard).map(({ tool, callID, result }) => [tool, callID, result]),
          [
            ["read", "call_short", output.slice(0, 1_500).trim()],
            ["grep", "call_long", shortened(1_501)],
            ["bash", "call_wrong", shortened(1_600)],
          ],
        );
        assert.match(preamble, /2 tool results shortened to 1500 characters/);
        assert.match(preamble, /\[Tool: grep\] .*\(call_long: 1501 characters\)/);
        if (way === "replay")
          assert.equal(native[1]?.tool_calls?.[1]?.function.arguments, JSON.stringify(input));
      });

    for (const way of REBUILDING)
      it(`[FRK-3] by ${way}: over 100,000 tokens the oldest messages are removed, and the most recent stay`, async () => {
        await forks.seed(
          spoken(
            ...Array.from({ length: 12 }, (_, at) => [
              user(`u${at}`, `Question ${at}`),
              agent(`a${at}`, {}, `Answer ${at} `.padEnd(40_000, "lorem ipsum ")),
            ]).flat(),
          ),
        );
        const { heard, preamble } = await forks.forked(way);
        const kept = [3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert.deepEqual(
          saidIn(heard).map((said) => said.split(" ", 3).join(" ")),
          kept.flatMap((at) => [`User: Question ${at}`, `Agent: Answer ${at}`]),
        );
        assert.ok(tokensOf(heard) <= 100_000, `${tokensOf(heard)} tokens`);
        assert.match(preamble, /6 messages of 24 left out/);
        assert.match(preamble, /Messages left out, the latest first:\n- Agent: Answer 2 /);
      });

    /** Enough turns that a replay writes the older ones as text. */
    const turns = Array.from({ length: 40 }, (_, at) => [
      user(`u${at}`, `Question ${at}`),
      agent(`a${at}`, {}, `Answer ${at}`, call(`call_${at}`, { input: { path: "p".repeat(189 + at) } })),
    ]).flat();

    it("[FRK-1] with auto, a replay; without replay, a copy if the conversation is short and complete, else text", async () => {
      const auto = { strategy: "auto" } as const;
      const shortOf = (chars: number) =>
        spoken(user("u", "Hi."), agent("a", {}, call("c", { output: "o".repeat(chars) })));
      await forks.seed(shortOf(1_500));
      await forks.forked("replay", auto);
      await forks.forked("copy", { ...auto, hasReplay: false });
      forks.parent = await forks.newSession();
      await forks.seed(shortOf(1_501));
      await forks.forked("replay", auto);
      await forks.forked("text", auto);
      forks.parent = await forks.newSession();
      await forks.seed(spoken(...turns));
      await forks.forked("replay", auto);
      await forks.forked("text", auto);
    });

    it("a turn with more calls than a replay allows as text within the replay", async () => {
      const calls = Array.from({ length: 160 }, (_, at) => call(`call_${at}`));
      await forks.seed(spoken(user("u", "Read all."), agent("a", {}, ...calls)));
      const { heard, native } = await forks.forked("replay");
      assert.deepEqual(native, []);
      assert.deepEqual(
        callsIn(heard).map(({ callID }) => callID),
        calls.map(({ callID }) => callID),
      );
    });

    for (const way of REBUILDING)
      it(`by ${way}: only the range that the user chose`, async () => {
        await forks.seed(
          spoken(
            ...["One", "Two", "Three", "Four"].flatMap((text) => [
              user(text, text),
              agent(`a${text}`, {}, text),
            ]),
          ),
        );
        const ids = (await forks.real.messages(forks.parent)).map(({ info }) => info.id);
        forks.use(way);
        const sourceSessionID = forks.parent;
        const request = {
          sourceSessionID,
          fromMessageID: ids[2],
          upToMessageID: ids[5],
          maxToolResultChars: 10,
        };
        const task = await forks.launch({ fork: request });
        assert.deepEqual(saidIn((await forks.received(task)).heard), [
          "User: Two",
          "Agent: Two",
          "User: Three",
          "Agent: Three",
        ]);
        await forks.ended(task);
      });

    it("an image that a tool returned: as such by replay and copy, and named by text", async () => {
      const path = join(forks.server.directory, "dot.png");
      writeFileSync(path, Buffer.from(PIXEL.slice(PIXEL.indexOf(",") + 1), "base64"));
      const tools = [{ name: "read", args: { filePath: path } }];
      await forks.say(script([{ text: "Looking.", tools }, { text: "A dot." }], "Look. "));
      for (const way of ["copy", "replay"] as const) {
        const { heard, native } = await forks.forked(way);
        assert.ok(JSON.stringify(native).includes(PIXEL), way);
        assert.ok(heard.some((one) => "mime" in one && one.mime === "image/png"));
      }
      const { text } = await forks.forked("text");
      assert.match(
        text ?? "",
        /\nImage read successfully\n\[File: .*, image\/png, 70 B\]\n|\] Image read successfully\n\[File: .*, image\/png, 70 B\]\n/,
      );
    });

    it("the images of older messages that a replay hands over as text", async () => {
      const turns = Array.from({ length: 90 }, (_, n) => [
        user(`u${n}`, `Q ${n}`),
        agent(`a${n}`, {}, `A ${n}`),
      ]);
      const picture = user("first", "Build this.", {
        ...{ id: "prt_picture", type: "file", mime: "image/png", url: PIXEL, filename: "dot.png" },
      } as const);
      await forks.seed(spoken(picture, agent("seen", {}, "I see it."), ...turns.flat()));
      await forks.forked("replay");
      const asked = JSON.stringify(forks.model.requests.at(-1)?.messages);
      assert.match(asked, /\[File: dot\.png, image\/png, 70 B\]/);
      assert.ok(asked.includes(PIXEL.slice(PIXEL.indexOf(",") + 1)));
    });

    it("what a command had returned before it was aborted, in any way", async () => {
      // OpenCode doesn't wait for a command that goes on for more than a moment.
      const args = { command: "trap '' TERM; echo half; while :; do sleep 0.1; done", description: "wait" };
      await forks.begin(script([{ text: "I try.", tools: [{ name: "bash", args }] }], "Try. "));
      const stateOf = async (): Promise<object | undefined> =>
        (await forks.real.messages(forks.parent))
          .flatMap(({ parts }) => parts)
          .flatMap((part) => (part.type === "tool" ? [part.state] : []))[0];
      await until("the output", async () => JSON.stringify((await stateOf()) ?? {}).includes("half\\n"));
      await forks.post(`/session/${forks.parent}/abort`, {});
      await until("the end of the turn", async () => !(await forks.real.statuses()).has(forks.parent));
      await until("the end of the answer", async () =>
        (await forks.real.messages(forks.parent)).some(
          ({ info }) => info.role === "assistant" && info.completed !== undefined,
        ),
      );
      const results: unknown[] = [];
      for (const way of WAYS) results.push(callsIn((await forks.forked(way)).heard)[0]?.result);
      assert.match(String(results[0]), /^half/);
      assert.deepEqual(results, [results[0], results[0], results[0]]);
    });

    it("no result that OpenCode cleared, in any way", async () => {
      await forks.seed(spoken(user("u", "Look."), agent("a", {}, call("c", { output: "An old result." }))));
      const path = `/session/${forks.parent}/message`;
      const [, { parts } = { parts: [] }] = (await (await forks.server.fetch(path)).json()) as {
        parts: { id: string; messageID: string; state: { time: object } }[];
      }[];
      const [part] = parts;
      assert.ok(part);
      const { state } = part;
      const cleared = { ...part, state: { ...state, time: { ...state.time, compacted: Date.now() } } };
      const response = await forks.server.fetch(`${path}/${part.messageID}/part/${part.id}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(cleared),
      });
      assert.ok(response.ok);
      for (const way of WAYS)
        assert.equal(
          callsIn((await forks.forked(way)).heard)[0]?.result,
          "[Old tool result content cleared]",
        );
    });

    it("nothing that the user undid, in any way, and no undone prompt to start from", async () => {
      await forks.say("Keep this.");
      await forks.say("Undo this.");
      const sourceSessionID = forks.parent;
      const undone = (await forks.real.messages(sourceSessionID))[2]?.info.id;
      await forks.post(`/session/${sourceSessionID}/revert`, { messageID: undone });
      for (const [way, settings] of [["replay"], ["text"], ["text", { strategy: "fork" }]] as const) {
        const { heard } = await forks.forked(way, settings);
        assert.deepEqual(saidIn(heard), ["User: Keep this.", "Agent: Yes."]);
      }
      const starts = await forks.engine.forkStarts(sourceSessionID);
      assert.deepEqual(
        starts.map(({ text }) => text),
        ["Keep this."],
      );
      await isRefusedWithoutTrace(
        () => forks.launch({ fork: { sourceSessionID, fromMessageID: undone } }),
        /isn't in the forked part of the conversation/,
      );
      // The next prompt removes what was undone, also for a fork that began before.
      const failing = { status: 400, body: { error: { message: "No." } } };
      const { id } = await forks.launch({ prompt: carryOn(failing) });
      await forks.ended({ id });
      await forks.say("Later.");
      const again = await forks.engine.retry(id);
      assert.deepEqual(saidIn((await forks.received(again)).heard), ["User: Keep this.", "Agent: Yes."]);
    });

    it("exactly what the preview showed", async () => {
      await forks.seed(manyResults(2, 2_000));
      forks.use("text");
      const preview = await forks.engine.previewFork({ sourceSessionID: forks.parent });
      assert.equal(preview.shortenedResults, 20);
      const { preamble, text } = await forks.forked("text");
      assert.equal(`${preamble}\n\n${text}`, preview.text);
    });

    for (const way of REBUILDING)
      it(`[FRK-6] [FRK-7] by ${way}: as text, messages are labelled by who spoke, and calls show the first 200 characters of their arguments`, async () => {
        await forks.seed(spoken(...turns));
        const { text = "", native, heard } = await forks.forked(way);
        assert.match(
          text,
          /^User: Question 0\n\nAgent: Answer 0\n\[Tool: [^]*\n\nUser: Question 1\n\nAgent: Answer 1\n/,
        );
        assert.equal(native.length > 0, way === "replay");
        assert.equal(heard.length, 40 * 3);
        const full = JSON.stringify({ path: "p".repeat(189) });
        assert.equal(full.length, 200);
        assert.ok(text.includes(`\n[Tool: read] ${full}\n[Result of call_0] done`), text.slice(0, 1_000));
        assert.ok(text.includes(`\n[Tool: read] ${full.slice(0, -2)}pp…\n[Result of call_2] done`));
      });

    it("no compaction because of the tokens of the copied messages, even with a smaller model", async () => {
      const usage = { prompt_tokens: 150_000, completion_tokens: 10, total_tokens: 150_010 };
      await forks.say(script([{ text: "I read much.", usage }], "Read much. "));
      for (const strategy of ["auto", "replay"] as const) {
        forks.use("replay", { strategy });
        const task = await forks.launch({ model: { providerID: "fake", modelID: "m2" } });
        await forks.ended(task);
        assert.equal(forks.requestsOf(task).length, 1);
        assert.match(saidIn((await forks.received(task)).heard).join("\n"), /Agent: I read much\./);
      }
    });
  });

  describe("the task of a fork", () => {
    for (const strategy of ["auto", "replay"] as const)
      it(`[FRK-1] with strategy ${strategy}: has its ID before the conversation is read, and is starting until then`, async () => {
        await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
        forks.use("replay", { strategy });
        const reading = holdReading();
        const { id } = await forks.launch();
        await reading.reached();
        const task = forks.engine.get(id);
        assert.equal(task?.status, "running");
        assert.equal(task.progress?.phase, "starting");
        assert.deepEqual(await storedMessages(forks.server, id), []);
        reading.release();
        assert.equal((await forks.ended({ id })).status, "completed");
      });

    for (const way of WAYS)
      it(`by ${way}: has used nothing before its own turn, and only that turn's usage afterwards`, async () => {
        const usage = { prompt_tokens: 700, completion_tokens: 300, total_tokens: 1_000 };
        await forks.say(script([{ text: "Dear.", usage }]));
        await until("what the parent spent", () => (forks.engine.session(forks.parent)?.cost ?? 0) > 0);
        forks.use(way);
        const own = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
        const { id } = await forks.launch({
          prompt: carryOn({ text: "Cheap.", gate: `spent-${way}`, usage: own }),
        });
        await forks.model.waitForRequest(({ sessionID, title }) => sessionID === id && !title);
        const fresh = forks.engine.get(id);
        assert.equal(fresh?.cost, 0);
        assert.deepEqual(Object.values(fresh.tokens), [0, 0, 0, 0, 0]);
        forks.model.release(`spent-${way}`);
        await forks.ended({ id });
        const spent = await until("what it spent", () => {
          const task = forks.engine.get(id);
          return task && task.cost > 0 && task;
        });
        assert.deepEqual([spent.tokens.input, spent.tokens.output], [40, 2]);
        assert.equal(spent.cost.toFixed(6), "0.000042");
      });

    it("belongs to its parent if the copy could not be linked, and does not count the usage of the copied messages", async () => {
      const usage = { prompt_tokens: 700, completion_tokens: 300, total_tokens: 1_000 };
      await forks.say(script([{ text: "Dear.", usage }]));
      use("unlinked copy");
      const task = await forks.launch();
      assert.deepEqual(
        forks.engine.list(forks.parent).map(({ id }) => id),
        [task.id],
      );
      const session = await forks.real.session(task.id);
      assert.equal(session?.parentID, undefined);
      assert.equal(session?.title, "Fork");
      assert.equal(task.baseline?.input, 700);
      assert.equal(task.cost, 0);
      assert.deepEqual(Object.values(task.tokens), [0, 0, 0, 0, 0]);
      await forks.ended(task);
    });

    for (const way of [...WAYS, "unlinked copy"] as const)
      it(`by ${way}: has the model and the permissions of any other task`, async () => {
        await forks.say("Hi.");
        use(way);
        const m2 = { providerID: "fake", modelID: "m2" };
        const task = await forks.launch({ model: m2 });
        await forks.ended(task);
        assert.equal(forks.requestsOf(task)[0]?.model, "m2");
        const stored = (await (await forks.server.fetch(`/session/${task.id}`)).json()) as {
          permission?: unknown;
        };
        const plain = await forks.launch({ fork: undefined });
        await forks.ended(plain);
        const expected = (await (await forks.server.fetch(`/session/${plain.id}`)).json()) as {
          permission?: unknown;
        };
        assert.ok(expected.permission);
        assert.deepEqual(stored.permission, expected.permission);
      });

    for (const way of [...WAYS, "unlinked copy"] as const)
      it(`by ${way}: does not change the active session`, async () => {
        await forks.say("I am here.");
        await until("the active session", () => forks.window.session.id === forks.parent);
        const moves: unknown[] = [];
        const subscription = forks.window.session.onDidChange((id) => void moves.push(id));
        use(way);
        await forks.ended(await forks.launch());
        subscription.dispose();
        assert.deepEqual(moves, []);
      });

    it("is queued with its conversation, which the model gets once", async () => {
      await forks.say("Hi.");
      const first = await forks.launch({ prompt: carryOn({ text: "Slow.", gate: "slow" }), fork: undefined });
      forks.maxConcurrentTasks = 1;
      const { id } = await forks.launch();
      await until("the prompt to be stored", async () => (await forks.real.messages(id)).length === 3);
      assert.equal(forks.engine.get(id)?.progress?.phase, "queued");
      assert.deepEqual(forks.requestsOf({ id }), []);
      forks.model.release("slow");
      await forks.ended(first);
      const task = await forks.ended({ id });
      assert.equal(task.status, "completed");
      assert.deepEqual(saidIn((await forks.received(task)).heard), ["User: Hi.", "Agent: Yes."]);
      assert.equal(forks.requestsOf(task).length, 1);
    });

    it("continues another task's conversation", async () => {
      const first = await forks.launch({ prompt: carryOn({ text: "Found it." }), fork: undefined });
      await forks.ended(first);
      for (const way of WAYS) {
        forks.use(way);
        const task = await forks.launch({ fork: { sourceSessionID: first.id } });
        assert.equal(task.forkedFrom, first.id);
        assert.equal(task.parentSessionID, forks.parent);
        const got = await forks.received(task);
        assert.deepEqual(saidIn(got.heard).slice(1), ["Agent: Found it."]);
        assert.equal((await forks.ended(task)).resumeCount, 0);
      }
    });

    for (const way of WAYS) {
      it(`by ${way}: is forked again from the same messages when it is retried`, async () => {
        await forks.say("Hi.");
        forks.use(way);
        const failing = { status: 400, body: { error: { message: "No." } } };
        const { id } = await forks.launch({ prompt: carryOn(failing) });
        assert.equal((await forks.ended({ id })).status, "error");
        await forks.say("Later.");
        const again = await forks.engine.retry(id);
        assert.equal(again.isForked, true);
        assert.equal(again.forkedFrom, forks.parent);
        const got = await forks.received(again);
        assert.deepEqual(saidIn(got.heard), ["User: Hi.", "Agent: Yes."]);
        assert.equal(got.prompt, carryOn(failing));
        await forks.ended(again);
      });

      it(`by ${way}: is forked from what is left when it is retried and its last message is gone`, async () => {
        await forks.say("Hi.");
        await forks.say("Undone.");
        forks.use(way);
        const failing = { status: 400, body: { error: { message: "No." } } };
        const { id } = await forks.launch({ prompt: carryOn(failing) });
        assert.equal((await forks.ended({ id })).status, "error");
        const undone = (await forks.real.messages(forks.parent))[2]?.info.id;
        await forks.post(`/session/${forks.parent}/revert`, { messageID: undone });
        await forks.say("Later.");
        const again = await forks.engine.retry(id);
        const { heard } = await forks.received(again);
        assert.deepEqual(saidIn(heard), ["User: Hi.", "Agent: Yes.", "User: Later.", "Agent: Yes."]);
        await forks.ended(again);
      });

      it(`by ${way}: keeps its first message when it is retried`, async () => {
        await forks.say("First.");
        await forks.say("Second.");
        forks.use(way === "copy" ? "replay" : way);
        const [, second] = await forks.engine.forkStarts(forks.parent);
        const failing = { status: 400, body: { error: { message: "No." } } };
        const fork = { sourceSessionID: forks.parent, fromMessageID: second?.messageID };
        const { id } = await forks.launch({ prompt: carryOn(failing), fork });
        assert.equal((await forks.ended({ id })).status, "error");
        const again = await forks.engine.retry(id);
        assert.deepEqual(saidIn((await forks.received(again)).heard), ["User: Second.", "Agent: Yes."]);
        await forks.ended(again);
      });

      it(`by ${way}: keeps its conversation when it is resumed`, async () => {
        await forks.say("Hi.");
        forks.use(way);
        const { id } = await forks.launch();
        await forks.ended({ id });
        await forks.engine.resume(id, script([{ text: "Resumed." }], "Go on. "));
        await forks.ended({ id });
        const messages = forks.requestsOf({ id }).at(-1)?.messages ?? [];
        const said = messages
          .filter(({ role }) => role !== "system")
          .map((message) => JSON.stringify(message.content));
        assert.match(said.join("\n"), /Hi\.[^]*Yes\.[^]*are background[^]*Carry on\.[^]*Forked\.[^]*Go on\./);
        assert.equal(said.join("\n").split("are background").length, 2);
      });
    }

    it("shows its conversation to a reader who opened it before it was written", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      const reading = holdReading();
      const { id } = await forks.launch();
      await reading.reached();
      delete forks.instead.messages;
      const transcript = await forks.engine.transcript(id);
      reading.release();
      await forks.ended({ id });
      const texts = (): readonly string[] =>
        transcript.messages.flatMap(({ parts }) =>
          parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : [])),
        );
      // It is read again meanwhile, which may take longer than the task.
      await until("the whole conversation", () => texts().length >= 4);
      transcript.dispose();
      assert.deepEqual(texts(), ["Hi.", "Ho.", carryOn(), "Forked."]);
    });

    it("is one task with one conversation when its call is repeated", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      const reading = holdReading();
      const { id } = await forks.launch({ callID: "call_again" });
      await reading.reached();
      assert.equal((await forks.launch({ callID: "call_again" })).id, id);
      reading.release();
      const task = await forks.ended({ id });
      assert.equal(task.status, "completed", task.error?.message);
      assert.equal((await forks.launch({ callID: "call_again" })).id, id);
      assert.deepEqual(saidIn((await forks.received(task)).heard), ["User: Hi.", "Agent: Ho."]);
      assert.equal((await forks.real.messages(id)).length, 4);
      assert.equal(forks.requestsOf(task).length, 1);
    });
  });

  describe("tools", () => {
    const context = (): ToolContext => ({
      caller: { sessionID: forks.parent, by: "agent" },
      known: forks.engine,
      commands: forks.engine,
      signal: new AbortController().signal,
      now: Date.now,
    });

    it("[LST-2] [FRK-5] the list marks forked tasks, and no others", async () => {
      await forks.say("Hi.");
      const rows: RegExp[] = [];
      for (const way of WAYS) {
        forks.use(way);
        const { id } = await forks.launch();
        await forks.ended({ id });
        rows.push(new RegExp(`\\| ${shortID(id)} \\(forked\\) \\| completed`));
      }
      const plain = await forks.launch({ fork: undefined });
      await forks.ended(plain);
      const { text } = await runOf("asyncagents_list")({}, context());
      for (const row of rows) assert.match(text, row);
      assert.match(text, new RegExp(`\\| ${shortID(plain.id)} \\| completed`));
    });

    it("[FRK-1] the tool returns the ID before the caller's conversation is read, and the task gets that conversation", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      forks.use("replay", { strategy: "auto" });
      const reading = holdReading();
      const input = { prompt: carryOn(), description: "By the tool", agent: "general", fork: "true" };
      const { text } = await runOf("asyncagents_task")(input, context());
      const [task] = forks.engine.list(forks.parent);
      assert.ok(task?.isForked);
      assert.ok(text.includes(shortID(task.id)), text);
      assert.equal(task.launchedBy, "agent");
      await reading.reached();
      assert.deepEqual(await storedMessages(forks.server, task.id), []);
      reading.release();
      assert.deepEqual(saidIn((await forks.received(task)).heard), ["User: Hi.", "Agent: Ho."]);
      assert.equal((await forks.ended(task)).status, "completed");
    });

    it("[FRK-4] fork and resume together are refused at once", async () => {
      const done = await forks.launch({ fork: undefined });
      await forks.ended(done);
      const input = { prompt: "Both.", fork: true, resume: done.id, agent: "build" };
      await isRefusedWithoutTrace(() => runOf("asyncagents_task")(input, context()), /mutually exclusive/);
      assert.equal(forks.engine.get(done.id)?.resumeCount, 0);
    });
  });

  describe("failures", () => {
    it("limits that are not numbers greater than 0 are refused, in the call and in the settings", async () => {
      const limits: readonly Partial<ForkRequest>[] = [
        { maxTokens: 0 },
        { maxTokens: NaN },
        { maxToolResultChars: -1 },
      ];
      for (const limit of limits) {
        const request = { sourceSessionID: forks.parent, ...limit };
        await isRefusedWithoutTrace(() => forks.launch({ fork: request }), /must be a number greater than 0/);
      }
      forks.use("replay", { maxTokens: -5 });
      await isRefusedWithoutTrace(() => forks.launch(), /fork\.maxTokens must be a number greater than 0/);
    });

    it("a conversation that was deleted, or belongs to another folder, is refused", async () => {
      const source = await forks.newSession();
      await forks.server.fetch(`/session/${source}`, { method: "DELETE" });
      await until("the end of the session to be known", () => !forks.engine.session(source));
      const other = await forks.server.fetch(`/session?directory=${encodeURIComponent(tempDir("other"))}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      const { id } = (await other.json()) as { id: string };
      for (const sourceSessionID of [source, id, "ses_none"])
        for (const way of WAYS) {
          forks.use(way);
          await isRefusedWithoutTrace(
            () => forks.launch({ fork: { sourceSessionID } }),
            /doesn't exist in this folder\. Select another one/,
          );
        }
    });

    it("a task fails with the reason if the conversation is deleted while it is read", async () => {
      const source = await forks.newSession();
      await forks.seed(spoken(user("u", "Hi.")), source);
      const reading = holdReading(source);
      const { id } = await forks.launch({ fork: { sourceSessionID: source } });
      await reading.reached();
      await forks.real.deleteSession(source);
      reading.release();
      const task = await forks.ended({ id });
      assert.equal(task.status, "error");
      assert.equal(task.error?.name, "ForkFailed");
      assert.match(task.error.message, /conversation to fork doesn't exist/);
      assert.doesNotMatch(task.error.message, /Retry/);
    });

    it("a range that is not in the conversation is refused at once, and nothing is created", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      const other = await forks.newSession();
      await forks.seed(spoken(user("v", "Elsewhere.")), other);
      const [first, last] = (await forks.real.messages(forks.parent)).map(({ info }) => info.id);
      const [elsewhere] = (await forks.real.messages(other)).map(({ info }) => info.id);
      const ranges: readonly [Partial<ForkRequest>, string | undefined][] = [
        [{ fromMessageID: "msg_none" }, "msg_none"],
        [{ upToMessageID: "msg_none" }, "msg_none"],
        [{ fromMessageID: elsewhere }, elsewhere],
        [{ fromMessageID: last, upToMessageID: first }, last],
      ];
      holdReading();
      for (const way of REBUILDING)
        for (const [range, refusedID] of ranges) {
          forks.use(way);
          const fork = { sourceSessionID: forks.parent, ...range };
          await isRefusedWithoutTrace(
            () => forks.launch({ fork }),
            new RegExp(`${refusedID} isn't in the forked part of the conversation`),
          );
        }
    });

    it("after a replay that fails halfway, the child gets the whole conversation as text", async () => {
      const messages = Array.from({ length: 6 }, (_, at) => user(`u${at}`, `Note ${at}`));
      await forks.seed(spoken(...messages));
      breakWriting(refused);
      const task = await forks.launch();
      const got = await forks.received(task);
      assert.deepEqual(got.native, []);
      assert.deepEqual(
        saidIn(got.heard),
        messages.map((_, at) => `User: Note ${at}`),
      );
      assert.equal((await forks.ended(task)).status, "completed");
    });

    it("if the conversation cannot be transferred, the task fails with only its prompt stored, and can be retried", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      breakWriting(lost);
      const task = await forks.ended(await forks.launch());
      assert.equal(task.status, "error");
      assert.equal(task.error?.name, "ForkFailed");
      assert.match(
        task.error.message,
        /Couldn't transfer the conversation: The server is gone\. Retry it as a new task\./,
      );
      const stored = await until("the prompt", async () => {
        const messages = await storedMessages(forks.server, task.id);
        return messages.some(({ parts }) => parts.length > 0) && messages;
      });
      assert.deepEqual(
        stored.map(({ parts }) => parts.map(({ text }) => text)),
        [[carryOn()]],
      );
      assert.deepEqual(forks.requestsOf(task), []);
      forks.instead = {};
      const again = await forks.engine.retry(task.id);
      assert.deepEqual(saidIn((await forks.received(again)).heard), ["User: Hi.", "Agent: Ho."]);
      assert.equal((await forks.ended(again)).status, "completed");
    });

    it("a prompt whose answer was lost is not sent again", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      for (const way of WAYS) {
        forks.use(way);
        let isLost = false;
        forks.instead.prompt = async (id, sent) => {
          await forks.real.prompt(id, sent);
          if (sent.noReply || isLost) return;
          isLost = true;
          await lost();
        };
        const task = await forks.ended(await forks.launch());
        assert.equal(task.status, "completed", task.error?.message);
        assert.deepEqual(saidIn((await forks.received(task)).heard), ["User: Hi.", "Agent: Ho."]);
        assert.equal(forks.requestsOf(task).length, 1);
      }
    });

    it("a task cancelled while its prompt is sent is cancelled, and its model is stopped", async () => {
      await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
      const answering = gate();
      let isSent = false;
      forks.instead.prompt = async (id, sent) => {
        await forks.real.prompt(id, sent);
        isSent = true;
        await answering.passed;
      };
      const { id } = await forks.launch({ prompt: carryOn({ text: "Never.", gate: "handed-over" }) });
      await until("the prompt to be sent", () => isSent);
      await forks.received({ id });
      const cancelling = forks.engine.cancel(id);
      answering.release();
      assert.equal((await cancelling).status, "cancelled");
      await until("the model to be left", () => forks.requestsOf({ id }).every(({ aborted }) => aborted));
    });

    for (const moment of ["read", "written"] as const)
      it(`a task cancelled while its conversation is ${moment} is cancelled, and nothing runs later`, async () => {
        await forks.seed(spoken(user("u", "Hi."), agent("a", {}, "Ho.")));
        const reading = holdReading();
        const writing = gate();
        let isWriting = false;
        forks.instead.writeHistory = async (id, messages) => {
          isWriting = true;
          await writing.passed;
          await forks.real.writeHistory(id, messages);
        };
        const starts: boolean[] = [];
        forks.instead.prompt = (id, sent) => {
          starts.push(!sent.noReply);
          return forks.real.prompt(id, sent);
        };
        const { id } = await forks.launch();
        await reading.reached();
        if (moment === "written") reading.release();
        if (moment === "written") await until("the writing to begin", () => isWriting);
        const cancelling = forks.engine.cancel(id);
        reading.release();
        writing.release();
        assert.equal((await cancelling).status, "cancelled");
        assert.equal(isWriting, moment === "written");
        assert.deepEqual(starts, [false]);
        assert.equal(await promptText(forks.real, forks.engine.get(id)), carryOn());
        // Anything pending would have happened before this task ends.
        await forks.ended(await forks.launch({ fork: undefined }));
        assert.equal(forks.engine.get(id)?.status, "cancelled");
        assert.deepEqual(forks.requestsOf({ id }), []);
      });

    describe("when a window closes while the fork is built", () => {
      /** The ID of a task whose conversation was half written. */
      async function halfBuilt(input: Partial<LaunchInput> = {}, next = {}): Promise<string> {
        await forks.seed(
          spoken(user("u", "Hi."), agent("a", {}, "Ho."), user("v", "Hu."), agent("b", {}, "Ha.")),
        );
        let isHalfWritten = false;
        breakWriting(() => {
          isHalfWritten = true;
          return new Promise(() => undefined);
        });
        const { id } = await forks.launch(input);
        await until("half of it to be written", () => isHalfWritten);
        forks.window.dispose();
        forks.instead = {};
        await forks.openWindow(next);
        return id;
      }

      it("the task fails, and says what to do", async () => {
        const task = await forks.ended({ id: await halfBuilt({}, impatient()) });
        assert.equal(task.status, "error");
        assert.deepEqual(forks.requestsOf(task), []);
        assert.match(task.error?.message ?? "", /Launch a new task instead/);
      });

      it("a repeated call builds it again", async () => {
        const id = await halfBuilt({ callID: "call_broken_off" });
        await forks.say("Later.");
        assert.equal((await forks.launch({ callID: "call_broken_off" })).id, id);
        const { heard } = await forks.received({ id });
        assert.deepEqual(saidIn(heard), ["User: Hi.", "Agent: Ho.", "User: Hu.", "Agent: Ha."]);
        assert.equal((await forks.ended({ id })).status, "completed");
      });
    });
  });
});
