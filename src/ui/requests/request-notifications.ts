import * as vscode from "vscode";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import type { Question, RequestAnswer } from "../../engine/server-model.ts";
import { offerWarning } from "../dialogs.ts";
import { showError, translate } from "../messages.ts";
import { visible, withoutLinks } from "../plain-text.ts";
import {
  answerOneOf,
  answerRequest,
  explain,
  isUnknown,
  showAnswered,
  type FlowContext,
} from "./answer-flow.ts";
import { asker } from "./asker.ts";

/** Characters of a subject, a task's description and a reason in a notification. */
const SUBJECT_SHOWN = 300;
const TASK_SHOWN = 60;
const REASON_SHOWN = 120;
/** Maximum number of options, and of characters in each, for a question that is answered by buttons. */
const BUTTONS = 3;
const BUTTON_LENGTH = 24;

/** A button and its answer; without an answer, it opens the dialog. */
interface Choice extends vscode.MessageItem {
  readonly answer?: RequestAnswer;
}

/** Shows one request with its answers, and sends the user's choice. */
export async function showRequest(context: FlowContext, open: OpenRequest<MirroredRequest>): Promise<void> {
  const { known, tasks, logger } = context;
  const { request } = open;
  const explained = await explain(known, request);
  const isOpen = (): boolean => known.openRequests().some((one) => one.request.id === request.id);
  if (!isOpen()) return;
  const choice = await vscode.window.showWarningMessage<Choice>(
    message({ ...open, request: explained }),
    ...choices(explained),
  );
  if (!choice) return;
  if (!isOpen()) return showAnswered();
  try {
    await (choice.answer ? tasks.answer(request, choice.answer) : answerRequest(context, open));
  } catch (error) {
    if (isUnknown(error)) showAnswered();
    else await showError(error, logger);
  }
}

/** Shows that several requests are waiting. */
export async function showSeveral(context: FlowContext, count: number): Promise<void> {
  const message = vscode.l10n.t("{0} requests from agents are waiting for you.", count);
  if (!(await offerWarning(message, vscode.l10n.t("Answer…")))) return;
  try {
    await answerOneOf(context, () => context.known.openRequests());
  } catch (error) {
    await showError(error, context.logger);
  }
}

function message({ request, child }: OpenRequest<MirroredRequest>): string {
  const who = asker({ ...child, description: excerpt(oneLine(child.description), TASK_SHOWN) });
  const subject = excerpt(oneLine(request.subject), SUBJECT_SHOWN);
  const isPermission = request.type === "permission";
  const more = isPermission ? 0 : request.questions.length - 1;
  const wish = translate({ ...request.wish, values: [who, subject, more] });
  const reason = isPermission ? request.reason : undefined;
  return withoutLinks(
    reason === undefined
      ? wish
      : vscode.l10n.t("{0} (reason: {1})", wish, excerpt(oneLine(reason), REASON_SHOWN)),
  );
}

function choices(request: MirroredRequest): readonly Choice[] {
  if (request.type === "question")
    return [...questionChoices(request.questions), { title: vscode.l10n.t("Answer…") }];
  return [
    // Users must not allow what the notification doesn't show in full, such as a change to a file.
    ...(request.isTold && isShownWhole(request.subject)
      ? [{ title: vscode.l10n.t("Allow Once"), answer: { type: "permission", reply: "once" } as const }]
      : []),
    { title: vscode.l10n.t("Reject"), answer: { type: "permission", reply: "reject" } },
    { title: vscode.l10n.t("More…") },
  ];
}

function questionChoices([question, ...others]: readonly Question[]): readonly Choice[] {
  if (!question || others.length > 0 || question.multiple || !isShownWhole(question.question)) return [];
  const { options } = question;
  if (options.length > BUTTONS || !options.every(({ label }) => fitsButton(label))) return [];
  return options.map(({ label }) => ({ title: label, answer: { type: "question", answers: [[label]] } }));
}

function isShownWhole(text: string): boolean {
  return text.trim().length <= SUBJECT_SHOWN && !/[\r\n]/.test(text.trim());
}

function fitsButton(label: string): boolean {
  return label.length <= BUTTON_LENGTH && !/\$\(|[\r\n]/.test(label) && visible(label) === label;
}
