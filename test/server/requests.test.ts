import assert from "node:assert/strict";
import { createSession, notices, type EngineWindow } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { recordFetch } from "../support/recorded-fetch.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

const TASKS = 20;
/** What launches and ends of several tasks may read for all of them together. */
const SHARED = 10;

describe("the requests for many tasks", () => {
  let recording: ReturnType<typeof recordFetch>;
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    // The engine keeps the `fetch` that it finds when it connects.
    recording = recordFetch();
    // Events report how a turn ends.
    window = await start.engine(server, { pollInterval: 3_600_000 });
  });

  after(() => recording.dispose());

  const made = (): number => recording.requests.length;
  const madeSince = (before: number): readonly string[] =>
    recording.requests.slice(before).map(({ call }) => call);

  /** Until the parent is told of all its tasks: from then on, at most a record is still written. */
  async function untilNotified(parentSessionID: string): Promise<void> {
    const isSettled = (): boolean =>
      window.engine.list(parentSessionID).every(({ notice }) => notice.state === "delivered");
    await until("all notices", isSettled);
  }

  it("a launch by an agent takes two requests: the session and the prompt", async () => {
    const parents: string[] = [];
    const launch = async (): Promise<readonly string[]> => {
      const parentSessionID = await createSession(server);
      parents.push(parentSessionID);
      const isKnown = (): boolean => window.engine.sessions().some(({ id }) => id === parentSessionID);
      await until("the event of the session", isKnown);
      const before = made();
      await window.engine.launch({
        prompt: script([{ gate: "one", text: "Done." }]),
        agent: "general",
        parentSessionID,
        parentMessageID: "msg_asking",
        callingAgent: "build",
        launchedBy: "agent",
      });
      return madeSince(before);
    };
    // The first one reads the agents, too.
    await launch();
    const requests = await launch();
    assert.equal(requests.length, 2, requests.join("\n"));
    model.release("one");
    // The next test counts requests, too.
    await Promise.all(parents.map(untilNotified));
  });

  it("20 tasks of an agent take two requests each to launch, and at most five more until it is notified", async () => {
    const parentSessionID = await createSession(server);
    const before = made();
    await Promise.all(
      Array.from({ length: TASKS }, (_, at) =>
        window.engine.launch({
          prompt: script([{ gate: "all", text: "Done." }], `Look into ${at}. `),
          agent: "general",
          parentSessionID,
          launchedBy: "agent",
        }),
      ),
    );
    const launched = made();
    assert.ok(launched - before <= 2 * TASKS + SHARED, madeSince(before).join("\n"));
    model.release("all");
    await untilNotified(parentSessionID);
    assert.ok(made() - launched <= 5 * TASKS + SHARED, madeSince(launched).join("\n"));
    assert.equal((await notices(server, parentSessionID)).length, TASKS);
  });
});
