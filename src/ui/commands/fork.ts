import * as vscode from "vscode";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { PromptContext } from "./command.ts";
import { forkAsking } from "./launch-flow.ts";
import { pickConnected } from "./pick-task.ts";

export async function fork(context: PromptContext, argument: unknown): Promise<void> {
  const picked = await pickConnected(context, argument, { title: vscode.l10n.t("Fork Task") });
  if (!picked) return;
  const { child, folder } = picked;
  const { id, description, parentSessionID, agent, model } = child;
  const draft = { title: description, request: { sourceSessionID: id }, parentSessionID };
  await forkAsking(
    { ...context, folder },
    { agents: agent === undefined ? [] : [agent], model, fork: draft },
  );
}

export async function launchForked(context: PromptContext): Promise<void> {
  const folder = await connectedFolder(context.folders);
  const sessionID = await folder.session.ensure();
  const session = folder.known.session(sessionID);
  const agent = session?.agent ?? (await folder.calls.agents())[0]?.name;
  const draft = {
    title: session?.title ?? "",
    request: { sourceSessionID: sessionID },
    parentSessionID: sessionID,
  };
  await forkAsking(
    { ...context, folder },
    { agents: agent === undefined ? [] : [agent], model: session?.model, fork: draft },
  );
}
