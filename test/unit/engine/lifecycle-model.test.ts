import fc from "fast-check";
import { casesOf } from "../../support/cases.ts";
import { POLL_MS } from "../../support/memory-window.ts";
import { histories, World, type History } from "./lifecycle-world.ts";

/** The shortest histories that once revealed a bug. */
const LESSONS: Readonly<Record<string, History>> = {
  "a launch whose answer is lost is not left running for nobody": {
    limit: 0,
    steps: [
      { do: "launch", by: "agent" },
      { do: "fault", fault: "answer-lost", after: 2 },
      { do: "launch", by: "agent" },
    ],
  },
  "an end that could not be stored is stored later, and the parent is notified": {
    limit: 0,
    steps: [
      { do: "launch", by: "agent" },
      { do: "fault", fault: "refused", after: 2 },
      { do: "cancel", of: 0 },
    ],
  },
  "a resume does not replace a notice that was not sent yet": {
    limit: 0,
    steps: [
      { do: "launch", by: "agent" },
      { do: "move", of: 0, move: "go on" },
      { do: "move", of: 0, move: "complete" },
      { do: "fault", fault: "answer-late", after: 0 },
      { do: "cancel", of: 0 },
      { do: "resume", of: 0 },
      { do: "move", of: 0, move: "go on" },
    ],
  },
  "a task that is removed because it never got its prompt gets no notice": {
    limit: 0,
    steps: [
      { do: "launch", by: "agent" },
      { do: "fault", fault: "late", after: 3 },
      { do: "fault", fault: "refused", after: 2 },
      { do: "launch", by: "agent" },
      { do: "pass", ms: 3 * POLL_MS },
    ],
  },
  "a task cancelled just before its start does not keep the next one queued": {
    limit: 1,
    steps: [
      { do: "launch", by: "agent" },
      { do: "fault", fault: "late", after: 2 },
      { do: "launch", by: "agent" },
      { do: "clear", of: 1 },
      { do: "launch", by: "agent" },
      { do: "pass", ms: 200 },
      { do: "move", of: 0, move: "fail" },
      { do: "pass", ms: 3 * POLL_MS },
    ],
  },
  "a reply that the server is idle says nothing about the next step": {
    limit: 0,
    steps: [
      { do: "launch", by: "agent" },
      { do: "disconnect" },
      // The last call of a connect reads which sessions are running.
      { do: "fault", fault: "answer-late", after: 3 },
      { do: "connect" },
      { do: "move", of: 0, move: "go on" },
      { do: "move", of: 0, move: "use a tool" },
      { do: "move", of: 0, move: "go on" },
      { do: "move", of: 0, move: "go on" },
      { do: "release" },
    ],
  },
};

describe("the lifecycle, with events in any order", () => {
  // Hundreds of histories are run, even on a busy machine.

  for (const [lesson, history] of Object.entries(LESSONS)) it(lesson, () => live(history));

  for (const version of [1, 2] as const)
    it(`any history ends as the specification says, and each end is notified once, with a server like OpenCode ${version}`, async () => {
      const property = fc.asyncProperty(histories, (history) => live(history, version));
      await fc.assert(property, { numRuns: casesOf(300), seed: 20_240_601 });
    });
});

async function live({ limit, steps }: History, version: 1 | 2 = 1): Promise<void> {
  const world = new World(limit, undefined, version === 2);
  await world.start();
  for (const step of steps) await world.take(step);
  await world.calmDown();
  world.judge();
}
