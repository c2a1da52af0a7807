/**
 * How long a fork of a long conversation takes to reach its model, compared to the server's own copy. Runs only a few
 * rounds, because a copy takes many seconds.
 */
import { join } from "node:path";
import { freshID } from "../../src/engine/ids.ts";
import { historyEvents, NOTHING_SPENT } from "../../src/opencode/history.ts";
import { ThreadTokenCounter } from "../../src/tokens/token-counter.ts";
import { createSession, ended, openWindow, realClock } from "../support/engine.ts";
import { repository } from "../support/extension-host.ts";
import { longHistory } from "../support/histories.ts";
import { startOpenCode } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { post } from "./support/real-server.ts";
import { Report } from "./support/report.ts";

const MESSAGES = 500;
const BYTES = 5_000_000;

const model = await startScriptedModel({ fallback: () => ({ text: "Done." }) });
const server = await startOpenCode({ model });
const tokens = new ThreadTokenCounter({
  script: join(repository, "dist", "tokenizer.cjs"),
  clock: realClock,
});
const settings = { pollInterval: 5_000, notifyParent: false };
const window = await openWindow(server, settings, { tokens });
const source = await createSession(server);
await seed();
await until("the conversation to be known", () => window.engine.session(source));
const stored = await (await server.fetch(`/session/${source}/message`)).text();
if (stored.length < BYTES) throw new Error(`The conversation has ${stored.length} characters only.`);

/** Milliseconds until the ID is returned. */
const answered: number[] = [];
const figures = await interleaved({ rounds: 3, warmUp: 0 }, { copy: measureCopy, ours: measureOurs });
window.dispose();
tokens.dispose();
await server.stop();
await model.stop();

const ratio = ratios(figures.ours, figures.copy);
const report = new Report("fork");
report.figures("POST /session/:id/fork", "ms", figures.copy);
report.figures("launch to the ID", "ms", answered);
report.figures("launch to the model's first request", "ms", figures.ours);
report.figures("ours / copy", "×", ratio);
report.budget({ what: "ours / copy", value: median(ratio), limit: 0.2, unit: "×" });
report.finish();

/** Seeds answers as real turns leave them: two parts next to the call mark the start and end of the step. */
async function seed(): Promise<void> {
  const { directory } = server;
  const now = Date.now();
  const place = { sessionID: source, directory };
  const events = historyEvents(longHistory(MESSAGES, BYTES), place, now, Math.random).flatMap((event) => {
    const { part } = event.data as { readonly part?: { readonly type: string; readonly messageID: string } };
    if (part?.type !== "tool") return [event];
    const marks = [{ type: "step-start" }, { type: "step-finish", reason: "stop", ...NOTHING_SPENT }].map(
      (mark) => ({
        ...mark,
        id: freshID("prt", now, Math.random),
        messageID: part.messageID,
        sessionID: source,
      }),
    );
    return [event, ...marks.map((mark) => ({ ...event, data: { ...event.data, part: mark } }))];
  });
  const numbered = events.map((event, index) => ({
    ...event,
    id: freshID("evt", now, Math.random),
    seq: index + 1,
  }));
  await post(server, "/sync/replay", { directory, events: numbered });
}

async function measureCopy(): Promise<number> {
  let copy: { readonly id: string } | undefined;
  const took = await timed(async () => (copy = await post(server, `/session/${source}/fork`, {})));
  if (copy) await window.connection.server.deleteSession(copy.id);
  return took;
}

async function measureOurs(): Promise<number> {
  let id = "";
  const took = await timed(async () => {
    answered.push(await timed(async () => ({ id } = await launch())));
    await model.waitForRequest(({ sessionID, title }) => sessionID === id && !title, 60_000);
  });
  await ended(window, id);
  await window.connection.server.deleteSession(id);
  return took;
}

function launch() {
  return window.engine.launch({
    prompt: "Carry on.",
    agent: "build",
    parentSessionID: source,
    launchedBy: "person",
    fork: { sourceSessionID: source },
  });
}
