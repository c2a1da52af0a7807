import * as vscode from "vscode";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { PromptContext } from "./command.ts";
import { forkAsking } from "./launch-flow.ts";
import { findChild, pickFrom, referenceOf } from "./pick-task.ts";

/** Forks the conversation of a task or subagent, or that of the active session. */
export async function fork(context: PromptContext, argument: unknown): Promise<void> {
  const { folders, known } = context;
  const reference = referenceOf(argument);
  const folder = await connectedFolder(
    folders,
    reference === undefined ? undefined : known.folderOf(reference),
  );
  const active = reference === undefined ? await folder.session.ensure() : undefined;
  const title = vscode.l10n.t("Fork Conversation");
  const id = reference ?? (await pickFrom(context, { title, sessionID: active }));
  if (id === undefined) return;
  const child = id === active ? undefined : findChild(context, id);
  const session = child ? undefined : known.session(id);
  const { model } = child ?? session ?? {};
  const agent = child ? child.agent : (session?.agent ?? (await folder.calls.agents())[0]?.name);
  const draft = {
    title: child?.description ?? session?.title ?? "",
    request: { sourceSessionID: child?.id ?? id },
    parentSessionID: child?.parentSessionID ?? id,
  };
  await forkAsking(
    { ...context, folder: child ? await connectedFolder(folders, folders.of(child.id)) : folder },
    { agents: agent === undefined ? [] : [agent], model, fork: draft },
  );
}
