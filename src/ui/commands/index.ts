import type { Command } from "./command.ts";
import { launch } from "./launch.ts";
import { connect, refresh, selectSession, showLog, startServer, stopServer } from "./session-commands.ts";
import { cancel, resume, retry, sendNotice, showOutput, showSelected } from "./task-commands.ts";

/** A command that is loaded when it is first run. */
function lazily(command: Pick<Command, "id" | "isAboutTask">, load: () => Promise<Command>): Command {
  return { ...command, run: async (context, ...args) => (await load()).run(context, ...args) };
}

const isAboutTask = true;
const batch = () => import("./batch.ts");
const fork = () => import("./fork.ts");
const clearing = () => import("./clear.ts");
const copying = () => import("./copy.ts");
const listing = () => import("./list-commands.ts");
const prompts = () => import("./prompt-commands.ts");
const agentTools = () => import("./agent-tools-commands.ts");

/** Every command of the manifest, and those that only the product itself runs. */
export const COMMANDS: readonly Command[] = [
  launch,
  lazily({ id: "asyncagents.launchBatch" }, async () => (await batch()).launchBatch),
  lazily({ id: "asyncagents.launchForked" }, async () => (await fork()).launchForked),
  lazily({ id: "asyncagents.launchFromEditor" }, async () => (await prompts()).launchFromEditor),
  lazily({ id: "asyncagents.launchPrompt" }, async () => (await prompts()).launchPrompt),
  lazily({ id: "asyncagents.promptOptions" }, async () => (await prompts()).promptOptions),
  lazily({ id: "_asyncagents.splitPrompt" }, async () => (await prompts()).splitPrompt),
  showOutput,
  showSelected,
  lazily(
    { id: "asyncagents.showChanges", isAboutTask },
    async () => (await import("./changes.ts")).showChanges,
  ),
  lazily(
    { id: "asyncagents.openInTerminal", isAboutTask },
    async () => (await import("./terminal.ts")).openInTerminal,
  ),
  resume,
  lazily({ id: "asyncagents.fork", isAboutTask }, async () => (await fork()).fork),
  retry,
  cancel,
  lazily({ id: "asyncagents.cancelBatch", isAboutTask }, async () => (await batch()).cancelBatch),
  lazily({ id: "asyncagents.answer", isAboutTask }, async () => (await import("./answer.ts")).answer),
  sendNotice,
  lazily({ id: "asyncagents.clear", isAboutTask }, async () => (await clearing()).clear),
  lazily({ id: "asyncagents.clearFinished" }, async () => (await clearing()).clearFinished),
  lazily({ id: "asyncagents.copyTaskId", isAboutTask }, async () => (await copying()).copyTaskId),
  lazily({ id: "asyncagents.copyResult", isAboutTask }, async () => (await copying()).copyResult),
  lazily({ id: "asyncagents.filter" }, async () => (await listing()).filter),
  lazily({ id: "asyncagents.clearFilter" }, async () => (await listing()).clearFilter),
  lazily({ id: "asyncagents.sort" }, async () => (await listing()).sort),
  selectSession,
  connect,
  startServer,
  stopServer,
  refresh,
  lazily({ id: "asyncagents.installAgentTools" }, async () => (await agentTools()).installAgentTools),
  lazily({ id: "asyncagents.removeAgentTools" }, async () => (await agentTools()).removeAgentTools),
  showLog,
];
