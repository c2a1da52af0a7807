import { SHOW_SELECTED } from "../tree/task-tree.ts";
import type { Command } from "./command.ts";
import { launch } from "./launch.ts";

/** A command that is loaded when it is first run. */
function lazily(command: Pick<Command, "id" | "isAboutTask">, load: () => Promise<Command>): Command {
  return { ...command, run: async (context, ...args) => (await load()).run(context, ...args) };
}

const isAboutTask = true;
const ofTasks = () => import("./task-commands.ts");
const ofSession = () => import("./session-commands.ts");
const batch = () => import("./batch.ts");
const fork = () => import("./fork.ts");
const clearing = () => import("./clear.ts");
const copying = () => import("./copy.ts");
const listing = () => import("./list-commands.ts");
const agentTools = () => import("./agent-tools-commands.ts");

/** Every command of the manifest, and those that only the product itself runs. */
export const COMMANDS: readonly Command[] = [
  launch,
  lazily({ id: "asyncagents.launchBatch" }, async () => (await batch()).launchBatch),
  lazily({ id: "asyncagents.launchForked" }, async () => (await fork()).launchForked),
  lazily({ id: "asyncagents.showOutput", isAboutTask }, async () => (await ofTasks()).showOutput),
  lazily({ id: SHOW_SELECTED }, async () => (await ofTasks()).showSelected),
  lazily({ id: "asyncagents.resume", isAboutTask }, async () => (await ofTasks()).resume),
  lazily({ id: "asyncagents.fork", isAboutTask }, async () => (await fork()).fork),
  lazily({ id: "asyncagents.retry", isAboutTask }, async () => (await ofTasks()).retry),
  lazily({ id: "asyncagents.cancel", isAboutTask }, async () => (await ofTasks()).cancel),
  lazily({ id: "asyncagents.cancelBatch", isAboutTask }, async () => (await batch()).cancelBatch),
  lazily({ id: "asyncagents.answer", isAboutTask }, async () => (await import("./answer.ts")).answer),
  lazily({ id: "asyncagents.sendNotice", isAboutTask }, async () => (await ofTasks()).sendNotice),
  lazily({ id: "asyncagents.clear", isAboutTask }, async () => (await clearing()).clear),
  lazily({ id: "asyncagents.clearFinished" }, async () => (await clearing()).clearFinished),
  lazily({ id: "asyncagents.copyTaskId", isAboutTask }, async () => (await copying()).copyTaskId),
  lazily({ id: "asyncagents.copyResult", isAboutTask }, async () => (await copying()).copyResult),
  lazily({ id: "asyncagents.filter" }, async () => (await listing()).filter),
  lazily({ id: "asyncagents.clearFilter" }, async () => (await listing()).clearFilter),
  lazily({ id: "asyncagents.sort" }, async () => (await listing()).sort),
  lazily({ id: "asyncagents.selectSession" }, async () => (await ofSession()).selectSession),
  lazily({ id: "asyncagents.connect" }, async () => (await ofSession()).connect),
  lazily({ id: "asyncagents.startServer" }, async () => (await ofSession()).startServer),
  lazily({ id: "asyncagents.stopServer" }, async () => (await ofSession()).stopServer),
  lazily({ id: "asyncagents.refresh" }, async () => (await ofSession()).refresh),
  lazily({ id: "asyncagents.installAgentTools" }, async () => (await agentTools()).installAgentTools),
  lazily({ id: "asyncagents.removeAgentTools" }, async () => (await agentTools()).removeAgentTools),
  lazily({ id: "asyncagents.showLog" }, async () => (await ofSession()).showLog),
];
