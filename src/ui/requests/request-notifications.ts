import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import type { PendingRequest, RequestAnswer } from "../../engine/server-model.ts";
import { showError } from "../messages.ts";
import { offerWarning } from "../dialogs.ts";
import { visible, withoutLinks } from "../plain-text.ts";
import { answerOneOf, answerRequest, isUnknown, showAnswered, type FlowContext } from "./answer-flow.ts";
import { proposedDiff, requestReason } from "./request-facts.ts";
import { asker, requestWords } from "./request-words.ts";

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
export async function showRequest(context: FlowContext, open: OpenRequest): Promise<void> {
  const { known, tasks, logger } = context;
  const { request } = open;
  const input = await known.toolInput(request).catch(() => undefined);
  const isOpen = (): boolean => known.openRequests().some((one) => one.request.id === request.id);
  if (!isOpen()) return;
  const choice = await vscode.window.showWarningMessage<Choice>(message(open, input), ...choices(request));
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

function message(
  { request, child }: OpenRequest,
  input: Readonly<Record<string, unknown>> | undefined,
): string {
  const words = requestWords(request);
  const { subject } = words;
  const who = asker({ ...child, description: excerpt(oneLine(child.description), TASK_SHOWN) });
  const wish = words.sentence(who, excerpt(oneLine(subject), SUBJECT_SHOWN));
  const reason = requestReason(request, subject, input);
  return withoutLinks(
    reason === undefined
      ? wish
      : vscode.l10n.t("{0} (reason: {1})", wish, excerpt(oneLine(reason), REASON_SHOWN)),
  );
}

function choices(request: PendingRequest): readonly Choice[] {
  if (request.type === "question")
    return [...questionChoices(request.questions), { title: vscode.l10n.t("Answer…") }];
  return [
    // Users must not allow what the notification doesn't show in full, such as a change to a file.
    ...(isShownWhole(requestWords(request).subject) && proposedDiff(request) === undefined
      ? [{ title: vscode.l10n.t("Allow Once"), answer: { type: "permission", reply: "once" } as const }]
      : []),
    { title: vscode.l10n.t("Reject"), answer: { type: "permission", reply: "reject" } },
    { title: vscode.l10n.t("More…") },
  ];
}

function questionChoices([question, ...others]: Extract<
  PendingRequest,
  { type: "question" }
>["questions"]): readonly Choice[] {
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
