import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import { answerOneOf, answerRequest, type FlowContext } from "../requests/answer-flow.ts";
import { ancestors } from "../tree/family.ts";
import type { TaskContext } from "./command.ts";
import { findChild, referenceOf } from "./pick-task.ts";

/** Lets the user answer what an agent waits for; nothing is ever allowed by itself. */
export async function answer(context: FlowContext, argument: unknown): Promise<void> {
  const { known } = context;
  const reference = referenceOf(argument);
  if (reference === undefined) return void (await answerOneOf(context, () => known.openRequests()));
  const [oldest] = requestsBelow(context, findChild(context, reference).id);
  if (oldest) await answerRequest(context, oldest);
  else void vscode.window.showInformationMessage(vscode.l10n.t("This agent does not wait for you."));
}

/** What waits for a person at this agent, or at one that works for it. */
export function requestsBelow({ known }: Pick<TaskContext, "known">, id: string): readonly OpenRequest[] {
  const open = known.openRequests();
  const own = open.filter(({ child }) => child.id === id);
  return own.length > 0 ? own : open.filter(({ child }) => ancestors(known, child).includes(id));
}
