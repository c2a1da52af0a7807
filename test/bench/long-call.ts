/**
 * Whether a call that waits for minutes gets its answer, although clients and servers in between drop connections that
 * are idle for five minutes, and although the window reloads in the meantime.
 */
import { setTimeout as delay } from "node:timers/promises";
import { callTool, openAgentWindow, startAgentServer, startTurn } from "../support/agent-tools.ts";
import { createSession } from "../support/engine.ts";
import { script, startScriptedModel } from "../support/scripted-model.ts";
import { Report } from "./support/report.ts";

const SECONDS = 320;

const model = await startScriptedModel();
const server = await startAgentServer({ model });
const window = await openAgentWindow(server);
const parent = await createSession(server);

await callTool(server, parent, "asyncagents_task", { prompt: script([{ text: "Never.", gate: "never" }]) });
const [task] = window.engine.list(parent);
if (!task) throw new Error("The task was not launched");
const args = { task_id: task.id, block: true, timeout: SECONDS };
const startedAt = performance.now();
const turn = await startTurn(server, parent, [{ tools: [{ name: "asyncagents_output", args }] }]);
await delay((SECONDS / 2) * 1_000);
window.close();
await delay(3_000);
await window.reopen();
const [call] = await turn.ended((SECONDS + 60) * 1_000);
const took = (performance.now() - startedAt) / 1_000;
window.dispose();
await server.stop();
await model.stop();

console.log(`\n${call?.status}: ${call?.text}`);
const report = new Report("long-call");
report.figures(`asyncagents_output with a timeout of ${SECONDS} s`, "s", [took]);
report.budget({ what: "calls made, one of them again", value: window.calls.length, limit: 3, unit: "" });
report.budget({ what: "failed", value: call?.status === "completed" ? 0 : 1, limit: 0, unit: "calls" });
report.budget({ what: "later than asked for", value: took - SECONDS, limit: 5, unit: "s" });
report.finish();
