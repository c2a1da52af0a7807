import * as vscode from "vscode";
import type { PermissionRequest, Question, RequestAnswer } from "../../engine/server-model.ts";
import type { Command } from "./command.ts";
import { pickTask } from "./pick-task.ts";

/** Lets the person answer what a task waits for. Nothing is ever allowed by itself. */
export const answer: Command = {
  id: "asyncagents.answer",
  isAboutTask: true,
  async run(context, argument) {
    const { engine, tasks } = context;
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Answer Request"),
      accepts: ({ id }) => engine.pendingRequests(id).length > 0,
      none: vscode.l10n.t("No task waits for you."),
    });
    const [request] = task ? engine.pendingRequests(task.id) : [];
    if (!request) return undefined;
    const given =
      request.type === "permission" ? await askPermission(request) : await askQuestions(request.questions);
    if (given) await tasks.answer(request, given);
    return given;
  },
};

async function askPermission(request: PermissionRequest): Promise<RequestAnswer | undefined> {
  const what = request.patterns.join(", ") || request.permission;
  const items = [
    { label: vscode.l10n.t("$(check) Allow Once"), detail: what, reply: "once" },
    { label: vscode.l10n.t("$(check-all) Always Allow"), detail: request.always.join(", "), reply: "always" },
    { label: vscode.l10n.t("$(close) Reject"), detail: vscode.l10n.t("The task ends."), reply: "reject" },
    {
      label: vscode.l10n.t("$(comment) Reject and Say Why…"),
      detail: vscode.l10n.t("The task goes on another way."),
      reply: "explain",
    },
  ] as const;
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Permission: {0}", request.permission),
    placeHolder: what,
    ignoreFocusOut: true,
  });
  if (!picked) return undefined;
  if (picked.reply !== "explain") return { type: "permission", reply: picked.reply };
  const message = await vscode.window.showInputBox({
    title: vscode.l10n.t("Reject: {0}", what),
    prompt: vscode.l10n.t("What is the task to do instead?"),
    ignoreFocusOut: true,
  });
  return message === undefined ? undefined : { type: "permission", reply: "reject", message };
}

async function askQuestions(questions: readonly Question[]): Promise<RequestAnswer | undefined> {
  const answers: string[][] = [];
  for (const question of questions) {
    const given = await askQuestion(question);
    if (!given) return undefined;
    answers.push(given);
  }
  return { type: "question", answers };
}

async function askQuestion(question: Question): Promise<string[] | undefined> {
  const own = { label: vscode.l10n.t("$(edit) Another answer…"), description: "", isOwn: true };
  const items = [
    ...question.options.map(({ label, description }) => ({ label, description, isOwn: false })),
    ...(question.custom ? [own] : []),
  ];
  const options = { title: question.header, placeHolder: question.question, ignoreFocusOut: true };
  const picked = question.multiple
    ? await vscode.window.showQuickPick(items, { ...options, canPickMany: true })
    : await vscode.window.showQuickPick(items, options).then((item) => item && [item]);
  if (!picked) return undefined;
  const labels = picked.filter(({ isOwn }) => !isOwn).map(({ label }) => label);
  if (!picked.some(({ isOwn }) => isOwn)) return labels;
  const text = await vscode.window.showInputBox({ ...options, prompt: question.question });
  return text === undefined ? undefined : [...labels, text];
}
