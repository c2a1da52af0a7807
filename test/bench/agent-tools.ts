/**
 * How long an agent waits for the answer to a launch, and for the result of a task that has ended. Both are read from
 * the agent's conversation, in which the server records the start and end of each call, so the way through plugin and
 * window and back is included. A launch is compared to a call in which the window makes only the minimal requests that
 * start an agent. The same two requests, made from outside while the server is idle, are shown for comparison.
 */
import {
  callTool,
  openAgentWindow,
  startAgentServer,
  startTurn,
  type MadeCall,
} from "../support/agent-tools.ts";
import { ended } from "../support/engine.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { interleaved, median, ratios, timed } from "./support/measure.ts";
import { createParent, launchBare, launchFrom, quiet, work } from "./support/real-server.ts";
import { Report } from "./support/report.ts";

/** Descriptions for calls of `asyncagents_task` in which the window does less than the tool. */
const BARE = "bare";
const NOTHING = "nothing";

const model = await startScriptedModel({ fallback: () => ({ text: "Done." }) });
const server = await startAgentServer({ model });
const window = await openAgentWindow(server, {
  settings: { pollInterval: 5_000, stallWarning: 120_000 },
  async handle({ sessionID, input }, _signal, carryOut) {
    const { description } = input as { readonly description?: string };
    if (description === NOTHING) return { title: NOTHING, text: "" };
    if (description === BARE) return { title: BARE, text: await launchBare(server, sessionID) };
    return carryOut();
  },
});
const { engine } = window;

const figures = await interleaved(
  { rounds: 31, warmUp: 5 },
  {
    outside: () => withParent((parent) => timed(() => launchBare(server, parent))),
    nothing: () => withParent((parent) => call(parent, NOTHING)),
    bare: () => withParent((parent) => call(parent, BARE)),
    launch: () => withParent((parent) => call(parent, work.description)),
    wait: () => withParent(waitForResult),
  },
);
window.dispose();
await server.stop();
await model.stop();

const ratio = ratios(figures.launch, figures.bare);
const report = new Report("agent-tools");
report.figures("POST /session, prompt_async from outside", "ms", figures.outside);
report.figures("a call that does nothing", "ms", figures.nothing);
report.figures("a call that does POST /session, prompt_async", "ms", figures.bare);
report.figures("asyncagents_task", "ms", figures.launch);
report.figures("asyncagents_task / from outside", "×", ratios(figures.launch, figures.outside));
report.figures("asyncagents_task / a bare call", "×", ratio);
report.figures("end of a task → result of who waits", "ms", figures.wait);
report.budget({ what: "asyncagents_task / a bare call", value: median(ratio), limit: 1.3, unit: "×" });
report.budget({
  what: "end of a task → result of who waits",
  value: median(figures.wait),
  limit: 50,
  unit: "ms",
});
report.finish();

/** Takes each measurement in a new session, and waits until all of its consequences are over. */
async function withParent(measure: (parent: string) => Promise<number>): Promise<number> {
  const parent = await createParent(server);
  const figure = await measure(parent);
  await quiet({ server, window }, parent);
  return figure;
}

/** Milliseconds from the call to its answer. */
async function call(parent: string, description: string): Promise<number> {
  const { prompt, agent } = work;
  const { time } = await callTool(server, parent, "asyncagents_task", { prompt, agent, description });
  return endOf(time) - (time.start ?? NaN);
}

/**
 * Milliseconds from the end of a task, when its model has finished, until the agent that waits for it has the result.
 */
async function waitForResult(parentSessionID: string): Promise<number> {
  const gate = parentSessionID;
  const prompt = script([{ text: "Done.", gate }]);
  const { id } = await engine.launch({ ...launchFrom(parentSessionID), prompt });
  const before = window.calls.length;
  const args = { task_id: id, block: true };
  const turn = await startTurn(server, parentSessionID, [
    { tools: [{ name: "asyncagents_output", args }] },
    { text: "Seen." },
  ]);
  await until("the call", () => window.calls.length > before);
  model.release(gate);
  const { endedAt = NaN } = await ended(window, id);
  const [call] = await turn.ended();
  if (!call?.text.includes("\nDone.\n")) throw new Error(`The result did not come: ${call?.text}`);
  return endOf(call.time) - endedAt;
}

function endOf({ end }: MadeCall["time"]): number {
  if (end === undefined) throw new Error("The call has no answer.");
  return end;
}
