import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Message } from "../../../src/engine/server-model.ts";
import {
  INTERRUPTED,
  NEVER_ANSWERED,
  NEVER_STARTED,
  NEVER_STORED,
  promptLost,
} from "../../../src/engine/turn-errors.ts";
import { STEERING_MARK } from "../../../src/engine/turn.ts";
import { settled } from "../../support/manual-clock.ts";
import { POLL_MS } from "../../support/memory-window.ts";
import { answer, prompt, textPart, toolPart } from "./builders.ts";
import { BAD, BUSY, ENDED, ID, IDLE, RETRY, WatchedTurn } from "./watched-turn.ts";

describe("The watcher of turns", () => {
  let watched: WatchedTurn;

  const open = (...args: ConstructorParameters<typeof WatchedTurn>): void => {
    watched = new WatchedTurn(...args);
  };

  beforeEach(() => open());
  afterEach(() => watched.turns.dispose());

  const steering = (id = "msg_steering"): Message => ({
    info: { role: "user", id, sessionID: ID, created: 3_000, agent: "general" },
    parts: [
      {
        id: `prt_${id}`,
        sessionID: ID,
        messageID: id,
        type: "text",
        text: "Also the docs.",
        synthetic: false,
        metadata: { [STEERING_MARK]: true },
      },
    ],
  });

  describe("ends a turn", () => {
    const types = (): readonly string[] => watched.ends.map(({ type }) => type);

    it("whose answer is complete, whatever is written meanwhile", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      watched.whileAsked(1, () => watched.store(answer({ id: "msg_more" })));
      await watched.hearHint();
      assert.deepEqual(watched.ends, [
        { type: "turn-completed", at: 2_000, finalMessageID: "msg_answer", answer: "Done." },
      ]);
    });

    it("but not while its session works, or waits to ask the model again", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      for (const status of [BUSY, RETRY]) {
        watched.become(status);
        await watched.hearStatus(status);
        await watched.hearHint();
      }
      assert.deepEqual(watched.ends, []);
      watched.become(IDLE);
      await watched.hearStatus(IDLE);
      assert.deepEqual(types(), ["turn-completed"]);
    });

    it("whose answer is complete, without asking again whether its session is idle if an event said so", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      const asked = watched.asked("statuses");
      await watched.hearStatus(IDLE);
      assert.deepEqual(types(), ["turn-completed"]);
      assert.equal(watched.asked("statuses"), asked);
    });

    it("but asks if its session has begun to work again since", async () => {
      await watched.connect();
      watched.store(prompt(), answer());
      await watched.hearStatus(IDLE);
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      watched.become(BUSY);
      await watched.hearStatus(BUSY);
      await watched.hearHint();
      assert.deepEqual(watched.ends, []);
    });

    it("whose session is idle in so many words", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      watched.server.statuses = async () => new Map([[ID, IDLE]]);
      await watched.hearHint();
      await watched.clock.advance(1_000);
      assert.deepEqual(types(), ["turn-completed", "turn-completed"]);
    });

    for (const [what, changes] of Object.entries({
      "that failed": { completed: 2_000, error: BAD },
      "that called tools": { completed: 2_000, finish: "tools" },
    } as const))
      it(`${what}, unless something is written meanwhile`, async () => {
        await watched.connect();
        watched.store(prompt(), answer(changes));
        watched.whileAsked(1, () => watched.store(answer({ ...changes, id: "msg_more" })));
        await watched.hearStatus(IDLE);
        assert.deepEqual(watched.ends, []);
        await watched.hearStatus(IDLE);
        assert.deepEqual(types(), ["turn-failed"]);
      });

    it("that stands still in two polls", async () => {
      watched.store(prompt(), answer());
      await watched.turns.connect();
      await settled();
      await watched.hearHint();
      await watched.hearHint();
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(1_000);
      assert.deepEqual(watched.ends, [
        {
          type: "turn-failed",
          at: watched.clock.now(),
          error: INTERRUPTED,
          finalMessageID: undefined,
          openMessageID: "msg_answer",
        },
      ]);
    });

    it("but not one that went on between two polls, or while it is read", async () => {
      watched.store(prompt(), answer());
      await watched.turns.connect();
      watched.store(answer({}, [toolPart("prt_tool", "bash", "running")]));
      await watched.clock.advance(1_000);
      watched.whileAsked(2, () => watched.store(answer({}, [toolPart("prt_tool", "bash", "completed")])));
      await watched.clock.advance(POLL_MS);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(2 * POLL_MS);
      assert.deepEqual(types(), ["turn-failed"]);
    });

    it("with an error of which only an event told", async () => {
      await watched.connect();
      watched.store(prompt());
      watched.working().prompt = { kind: "stored" };
      await watched.hearError();
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start, error: BAD, neverBegan: false },
      ]);
    });

    it("with an error of which only an event told, unless something is written meanwhile", async () => {
      await watched.connect();
      watched.store(prompt());
      watched.working().prompt = { kind: "stored" };
      watched.whileAsked(1, () => watched.store(answer()));
      await watched.hearError();
      assert.deepEqual(watched.ends, []);
    });

    it("as cancelled if only an event told of an abort", async () => {
      await watched.connect();
      watched.store(prompt());
      watched.working().prompt = { kind: "stored" };
      await watched.hearError({ name: "Aborted", message: "Aborted" });
      assert.deepEqual(watched.ends, [{ type: "cancelled", at: watched.start, neverBegan: false }]);
    });
  });

  describe("with a server that resumes turns by itself", () => {
    beforeEach(() => open({}, true));

    for (const [what, message] of Object.entries({
      "an answer that stands still": answer(),
      "a step that called tools": answer({ completed: 2_000, finish: "tools" }),
    }))
      it(`gives it ten seconds for ${what}`, async () => {
        watched.store(prompt(), message);
        await watched.turns.connect();
        for (let at = 0; at < 9_000; at += 1_000) {
          await watched.clock.advance(1_000);
          await watched.hearStatus(IDLE);
        }
        assert.equal(watched.ends.length, 0);
        await watched.clock.advance(1_000 + 2 * POLL_MS);
        assert.equal(watched.ends[0]?.type, "turn-failed");
      });

    it("ends one exactly ten seconds after the connect", async () => {
      watched.store(prompt(), answer({ completed: 2_000, finish: "tools" }));
      await watched.turns.connect();
      await watched.clock.advance(9_999);
      await watched.hearStatus(IDLE);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(1);
      await watched.hearStatus(IDLE);
      assert.deepEqual(
        watched.ends.map(({ type }) => type),
        ["turn-failed"],
      );
    });

    for (const [type, changes] of Object.entries({
      "turn-completed": ENDED,
      "turn-failed": { completed: 2_000, error: BAD },
      cancelled: { completed: 2_000, error: { name: "Aborted", message: "Aborted" } },
    } as const))
      it(`ends one at once that has ended (${type})`, async () => {
        watched.store(prompt(), answer(changes, [textPart("Done.")]));
        await watched.turns.connect();
        await settled();
        assert.deepEqual(
          watched.ends.map((end) => end.type),
          [type],
        );
      });
  });

  describe("with a prompt that has no answer", () => {
    beforeEach(() => watched.store(prompt()));

    it("starts it at the second poll, and gives up ten seconds later", async () => {
      watched.working().prompt = { kind: "unknown" };
      await watched.turns.connect();
      await settled();
      assert.deepEqual([watched.working().prompt, watched.sent], [{ kind: "stored" }, []]);
      await watched.clock.advance(1_000);
      assert.deepEqual(watched.sent, [
        { messageID: "msg_prompt", agent: "general", model: undefined, parts: [] },
      ]);
      assert.equal(watched.working().waiting.total, 1_000);
      await watched.clock.advance(POLL_MS);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(POLL_MS);
      const at = watched.start + 11_000;
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at, error: NEVER_STARTED, finalMessageID: undefined },
      ]);
      assert.equal(watched.sent.length, 1);
    });

    it("does not give up if it is answered meanwhile", async () => {
      await watched.turns.connect();
      await watched.clock.advance(1_000 + POLL_MS);
      watched.whileAsked(2, () => watched.store(answer()));
      await watched.clock.advance(POLL_MS);
      assert.deepEqual(watched.ends, []);
    });

    it("starts one that steers the task, which has worked until its last answer", async () => {
      watched.store(
        answer({ completed: watched.start + 400, finish: "end" }, [textPart("Done.")]),
        steering(),
      );
      await watched.turns.connect();
      await watched.clock.advance(1_000);
      assert.deepEqual(
        watched.sent.map(({ messageID }) => messageID),
        ["msg_steering"],
      );
      assert.equal(watched.working().waiting.total, 600);
      await watched.clock.advance(2 * POLL_MS);
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start + 11_000, error: NEVER_ANSWERED, finalMessageID: undefined },
      ]);
    });

    it("doesn't shorten a wait that was longer", async () => {
      watched.working().waiting = { total: 5_000, since: undefined };
      await watched.turns.connect();
      await watched.clock.advance(1_000);
      assert.equal(watched.working().waiting.total, 5_000);
    });

    it("starts nothing because of a hint", async () => {
      await watched.turns.connect();
      await settled();
      for (let times = 0; times < 3; times++) await watched.hearHint();
      assert.deepEqual(watched.sent, []);
    });
  });

  describe("with a prompt that the server doesn't have", () => {
    it("gives the server 15 seconds to store it, then says that it never did", async () => {
      watched.working().prompt = watched.sentNow();
      watched.settings = { ...watched.settings, pollInterval: 1_000 };
      await watched.turns.connect();
      await watched.clock.advance(14_000);
      assert.equal(watched.working().suspicion, undefined);
      await watched.clock.advance(1_000);
      assert.deepEqual([watched.working().suspicion?.mark, watched.ends], ["unseen", []]);
      await watched.clock.advance(1_000);
      const at = watched.start + 16_000;
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at, error: NEVER_STORED, finalMessageID: undefined },
      ]);
      assert.deepEqual(watched.sent, []);
    });

    it("gives it a minute for one with files, even after an error about one of them", async () => {
      const file = { mime: "text/plain", url: "file:///gone" };
      const { prompt: plain } = watched.sentNow();
      watched.working().prompt = watched.sentNow({ prompt: { ...plain, files: [file] } });
      watched.settings = { ...watched.settings, pollInterval: 1_000 };
      await watched.connect();
      await watched.hearError();
      await watched.clock.advance(59_000);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(1_000);
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start + 60_000, error: BAD, neverBegan: true },
      ]);
    });

    it("believes an error at the next poll, a second after the hint", async () => {
      watched.settings = { ...watched.settings, pollInterval: 60_000 };
      await watched.connect();
      await watched.clock.advance(1_000);
      watched.working().prompt = watched.sentNow();
      watched.server.journal.length = 0;
      await watched.hearError();
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(999);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(1);
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start + 2_000, error: BAD, neverBegan: true },
      ]);
    });

    it("sends one again that may be lost, and counts no work until then", async () => {
      await watched.clock.advance(2_000);
      watched.working().prompt = watched.sentNow({ isDoubtful: true });
      await watched.turns.connect();
      await settled();
      assert.equal(watched.sent.length, 1);
      assert.deepEqual(watched.working().prompt, watched.sentNow());
      assert.equal(watched.working().waiting.total, 2_000);
      assert.equal(watched.working().suspicion, undefined);
    });

    it("sends a follow-up again whose text is in the record", async () => {
      watched.entry.record = {
        ...watched.entry.record,
        status: "resumed",
        followUp: { text: "And?", messageID: "msg_prompt" },
      };
      await watched.turns.connect();
      await settled();
      assert.deepEqual(
        watched.sent.map(({ parts }) => parts.map(({ text }) => text)),
        [["And?"]],
      );
    });

    it("gives up on one that can't be sent again", async () => {
      watched.working().prompt = watched.sentNow({ isDoubtful: true });
      let tries = 0;
      watched.server.prompt = () => {
        tries++;
        return Promise.reject(new ServerFailure("prompt", "unreachable", "Gone away."));
      };
      await watched.turns.connect();
      await watched.clock.advance(1_000 + POLL_MS);
      assert.deepEqual(watched.ends, []);
      await watched.clock.advance(POLL_MS);
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start + 11_000, error: NEVER_STORED, finalMessageID: undefined },
      ]);
      assert.equal(tries, 4);
    });

    for (const status of ["running", "resumed"] as const)
      it(`says of one that an earlier process sent, and that was ${status}, that it was lost`, async () => {
        watched.entry.record = { ...watched.entry.record, status };
        await watched.turns.connect();
        await watched.clock.advance(1_000 + POLL_MS);
        assert.deepEqual(watched.ends, []);
        await watched.clock.advance(POLL_MS);
        const error = promptLost(watched.entry.record);
        assert.deepEqual(watched.ends, [
          { type: "turn-failed", at: watched.start + 11_000, error, neverBegan: true },
        ]);
      });

    it("says of a follow-up that this process sent that it was lost", async () => {
      watched.entry.record = { ...watched.entry.record, status: "resumed" };
      watched.working().prompt = watched.sentNow();
      watched.settings = { ...watched.settings, pollInterval: 1_000 };
      await watched.turns.connect();
      await watched.clock.advance(16_000);
      const error = promptLost(watched.entry.record);
      assert.deepEqual(watched.ends, [
        { type: "turn-failed", at: watched.start + 16_000, error, neverBegan: true },
      ]);
    });

    it("does not give up if it arrives meanwhile", async () => {
      await watched.turns.connect();
      await watched.clock.advance(1_000 + POLL_MS);
      watched.whileAsked(2, () => watched.store(prompt()));
      await watched.clock.advance(POLL_MS);
      assert.deepEqual(watched.ends, []);
    });
  });

  describe("dates an end that wasn't recorded", () => {
    const at = (): number | undefined => watched.ends[0]?.at;

    /** The server dies, which is noticed after this time, and is there again a minute and a half later. */
    async function lose(afterMs: number): Promise<void> {
      watched.server.statuses = async () =>
        new Map(watched.clock.now() < watched.start + 60_000 ? [[ID, BUSY]] : []);
      await watched.turns.connect();
      await watched.clock.advance(500);
      watched.turns.hear();
      await watched.clock.advance(afterMs);
      watched.turns.disconnect();
      await watched.clock.advance(90_000);
      watched.turns.disconnect();
      await watched.clock.advance(1_000);
      await watched.turns.connect();
      await watched.clock.advance(1_000);
    }

    for (const [what, created, noticedAfter, expected] of [
      ["the moment when the connection was lost", 0, 3_000, 3_500],
      ["twelve seconds after the last sign of life if it was lost later", 0, 30_000, 12_500],
      ["its last trace if that is later", 20_000, 3_000, 20_000],
    ] as const)
      it(`to ${what}`, async () => {
        watched.store(prompt(), answer({ created: watched.start + created }));
        await lose(noticedAfter);
        assert.equal(at(), watched.start + expected);
      });

    it("to its start if nothing else is known", async () => {
      await watched.clock.advance(50_000);
      watched.store(prompt(), answer({ created: 5_000 }));
      await watched.turns.connect();
      await watched.clock.advance(1_000);
      assert.equal(at(), watched.start);
    });

    it("never to the future", async () => {
      await watched.clock.advance(50_000);
      watched.store(prompt(), answer({ created: watched.start + 900_000 }));
      await watched.turns.connect();
      await watched.clock.advance(1_000);
      assert.equal(at(), watched.start + 51_000);
    });

    it("to now if the connection has been there since its start", async () => {
      watched.store(prompt(), answer({ created: watched.start }));
      await watched.turns.connect();
      await watched.clock.advance(1_000);
      assert.equal(at(), watched.start + 1_000);
    });
  });
});
