/**
 * How much the engine adds to parsing the event stream of a busy server, on which 20 tasks stream 2,000 deltas each.
 */
import { ActiveSession } from "../../src/engine/active-session.ts";
import { createEventDecoder } from "../../src/opencode/events.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { computed, interleaved, median, ratios } from "./support/measure.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "./support/memory-engine.ts";
import { Report } from "./support/report.ts";

const TASKS = 20;
const DELTAS = 2_000;

const server = new MemoryServer();
const { tasks } = await addRunningTasks(server, TASKS);
const engine = memoryEngine(server);
const session = new ActiveSession(engine, server, strictLogger);
await engine.connect();
await session.refresh();
let changes = 0;
engine.onDidChange(() => changes++);
const decode = createEventDecoder(strictLogger, "/work");
const lines = streams(tasks);

const figures = await interleaved(
  { rounds: 31, warmUp: 5 },
  {
    parse: () =>
      computed(() => {
        for (const line of lines) JSON.parse(line);
      }),
    engine: () =>
      computed(() => {
        for (const line of lines) {
          const event = decode(JSON.parse(line));
          if (event) server.emit(event);
        }
      }),
  },
);
if (changes < TASKS) throw new Error("The events did not reach the tasks.");
session.dispose();
engine.dispose();

const ratio = ratios(figures.engine, figures.parse);
const report = new Report("event-intake");
report.figures("JSON.parse alone", "ms", figures.parse);
report.figures("decoded and taken in", "ms", figures.engine);
report.figures("taken in / JSON.parse", "×", ratio);
report.budget({ what: "taken in / JSON.parse", value: median(ratio), limit: 1.5, unit: "×" });
report.finish();

/**
 * The events as lines, alternating between tasks. The first event of each task resets its part, and with it the text.
 */
function streams(tasks: readonly string[]): string[] {
  const words = "Now I look at the next file, because the error is thrown in its first function. ".split(
    /(?<= )/,
  );
  const lines: string[] = [];
  const add = (type: string, properties: Record<string, unknown>): void =>
    void lines.push(
      JSON.stringify({ id: `evt_${lines.length.toString(16).padStart(26, "0")}`, type, properties }),
    );
  const places = tasks.map((sessionID, index) => ({
    sessionID,
    messageID: `msg_${index.toString().padStart(26, "0")}`,
    id: `prt_${index.toString().padStart(26, "0")}`,
  }));
  for (const place of places)
    add("message.part.updated", {
      sessionID: place.sessionID,
      part: { ...place, type: "text", text: "", time: { start: 1 } },
      time: 1,
    });
  for (let index = 0; index < DELTAS; index++)
    for (const { sessionID, messageID, id: partID } of places)
      add("message.part.delta", {
        sessionID,
        messageID,
        partID,
        field: "text",
        delta: words[index % words.length],
      });
  return lines;
}
