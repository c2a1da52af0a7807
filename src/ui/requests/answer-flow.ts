import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { ServerFailure } from "../../engine/ports.ts";
import type {
  PendingRequest,
  PermissionRequest,
  Question,
  QuestionRequest,
  RequestAnswer,
} from "../../engine/server-model.ts";
import type { PromptContext } from "../commands/command.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { showError } from "../human-error.ts";
import { visible, withoutIcons } from "../plain-text.ts";
import { askText, pickOne, pickSome, type StepButton } from "../quick-input.ts";
import { BACK, type Answer } from "../wizard.ts";
import { proposedDiff, requestReason } from "./request-facts.ts";
import { alwaysWords, asker, requestWords } from "./request-words.ts";

/** What answering requests needs. */
export type FlowContext = Pick<
  PromptContext,
  "known" | "folders" | "tasks" | "memory" | "openText" | "logger"
>;

/** Lists cut longer questions. */
const QUESTION_SHOWN = 90;
/** Longer subjects leave no room for the rest of the row. */
const SUBJECT_SHOWN = 60;

/**
 * The user's input so far. It is kept across steps, and if an answer can't be sent; texts are also kept for the next
 * time when the user leaves.
 */
interface Drafts {
  reason: string;
  readonly answers: { labels: readonly string[]; own: string }[];
}

/** Lets the user pick one of the open requests, oldest first, and answer it. */
export async function answerOneOf(
  context: FlowContext,
  requests: () => readonly OpenRequest[],
): Promise<RequestAnswer | undefined> {
  for (let wasListed = false; ; wasListed = true) {
    const open = requests();
    // A list that shrinks to one request stays open: an Enter that is about to be pressed must not answer something
    // else.
    const only = open.length === 1 && !wasListed ? open[0] : undefined;
    const picked = only ?? (await pickRequest(context.known, open));
    if (picked === "changed") continue;
    if (!picked || picked === BACK) return undefined;
    const given = await answerRequest(context, picked, !only);
    if (given !== BACK) return given;
  }
}

/**
 * Lets the user answer a request, and sends the answer. Undefined if they left, or if the request is no longer open.
 */
export async function answerRequest(
  context: FlowContext,
  open: OpenRequest,
  canGoBack = false,
): Promise<Answer<RequestAnswer>> {
  const { known, tasks, memory, logger } = context;
  const { request } = open;
  const drafts = readDrafts(memory, request);
  for (;;) {
    const watch = watchRequest(known, request.id);
    const given = await ask(context, open, { over: watch.over, canGoBack }, drafts).finally(() => {
      watch.dispose();
      keepDrafts(memory, request, drafts);
    });
    if (watch.over.aborted) break;
    if (given === undefined || given === BACK) return given;
    dropDrafts(memory, request);
    try {
      await tasks.answer(request, given);
      return given;
    } catch (error) {
      if (isUnknown(error)) break;
      keepDrafts(memory, request, drafts);
      void showError(error, logger);
    }
  }
  dropDrafts(memory, request);
  showAnswered(drafts);
  return undefined;
}

function readDrafts(memory: FlowContext["memory"], request: PendingRequest): Drafts {
  return {
    reason: memory.draft(draftName(request)),
    answers: questionsOf(request).map((_, at) => ({ labels: [], own: memory.draft(draftName(request, at)) })),
  };
}

function keepDrafts(
  memory: FlowContext["memory"],
  request: PendingRequest,
  { reason, answers }: Drafts,
): void {
  memory.keepDraft(draftName(request), reason);
  answers.forEach(({ own }, at) => memory.keepDraft(draftName(request, at), own));
}

function dropDrafts(memory: FlowContext["memory"], request: PendingRequest): void {
  const answers = questionsOf(request).map(() => ({ labels: [], own: "" }));
  keepDrafts(memory, request, { reason: "", answers });
}

/** The draft name for a rejection message, or for the custom answer to one of the questions. */
function draftName({ id }: PendingRequest, question?: number): string {
  return question === undefined ? `reject ${id}` : `answer ${id} ${question}`;
}

function questionsOf(request: PendingRequest): readonly Question[] {
  return request.type === "question" ? request.questions : [];
}

/** Whether the server no longer knows the answered request. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ServerFailure && error.reason === "not-found";
}

/** Says that a request is no longer open, and offers to copy what was written for it. */
export function showAnswered(drafts?: Pick<Drafts, "reason" | "answers">): void {
  const written = [drafts?.reason ?? "", ...(drafts?.answers ?? []).map(({ own }) => own)].filter(Boolean);
  const message = vscode.l10n.t("Already answered, or the agent stopped.");
  if (written.length === 0) return void vscode.window.showInformationMessage(message);
  const copy = vscode.l10n.t("Copy What You Wrote");
  void vscode.window.showInformationMessage(message, copy).then((choice) => {
    if (choice === copy) void vscode.env.clipboard.writeText(written.join("\n"));
  });
}

/** Aborts `over` when the request is no longer open; `dispose` stops watching. */
function watchRequest(
  known: Pick<Tasks, "openRequests" | "onDidChangeRequests">,
  requestID: string,
): { readonly over: AbortSignal; readonly dispose: () => void } {
  const over = new AbortController();
  const check = (): void => {
    if (!known.openRequests().some(({ request }) => request.id === requestID)) over.abort();
  };
  const subscription = known.onDidChangeRequests(check);
  check();
  return { over: over.signal, dispose: () => subscription.dispose() };
}

async function pickRequest(
  known: Pick<Tasks, "onDidChangeRequests">,
  open: readonly OpenRequest[],
): Promise<OpenRequest | typeof BACK | "changed" | undefined> {
  if (open.length === 0)
    return void vscode.window.showInformationMessage(vscode.l10n.t("No agent is waiting for you."));
  const changed = new AbortController();
  const subscription = known.onDidChangeRequests(() => changed.abort());
  const picked = await pickOne({
    title: vscode.l10n.t("Waiting for You ({0})", open.length),
    placeholder: vscode.l10n.t("Select a request to answer, oldest first"),
    canGoBack: false,
    over: changed.signal,
    items: open.map((one) => {
      const { icon, title, subject } = requestWords(one.request);
      return {
        label: `$(${icon}) ${shown(subject)}`,
        description: withoutIcons(asker(one.child)),
        detail: withoutIcons(title),
        open: one,
      };
    }),
  });
  subscription.dispose();
  if (changed.signal.aborted) return "changed";
  return picked === BACK ? BACK : picked?.open;
}

interface AskOptions {
  readonly over: AbortSignal;
  readonly canGoBack: boolean;
}

function ask(
  context: FlowContext,
  { request, child }: OpenRequest,
  options: AskOptions,
  drafts: Drafts,
): Promise<Answer<RequestAnswer>> {
  const who = asker(child);
  return request.type === "permission"
    ? askPermission(context, request, who, options, drafts)
    : askQuestions(context, request, who, options, drafts);
}

async function askPermission(
  context: FlowContext,
  request: PermissionRequest,
  who: string,
  options: AskOptions,
  drafts: Drafts,
): Promise<Answer<RequestAnswer>> {
  const { title, icon, subject } = requestWords(request);
  const input = await context.known.toolInput(request).catch(() => undefined);
  const reason = requestReason(request, subject, input);
  const diff = proposedDiff(request);
  // Enter takes the first row, which allows nothing. The row that allows most is the last one.
  const items = [
    {
      label: `$(${icon}) ${shown(subject)}`,
      description: diff === undefined ? vscode.l10n.t("Show in Full…") : vscode.l10n.t("Show Change…"),
      detail: reason === undefined ? "" : withoutIcons(vscode.l10n.t("Reason: {0}", oneLine(reason))),
      does: "show",
    },
    { label: vscode.l10n.t("Your answer"), kind: vscode.QuickPickItemKind.Separator, does: "show" },
    { label: vscode.l10n.t("$(check) Allow Once"), does: "once" },
    {
      label: vscode.l10n.t("$(close) Reject"),
      description: vscode.l10n.t("The agent stops."),
      does: "reject",
    },
    {
      label: vscode.l10n.t("$(comment) Reject with a Message…"),
      description: vscode.l10n.t("The agent tries another way."),
      does: "explain",
    },
    // Without patterns it would be unclear what is allowed.
    ...(request.always.length > 0
      ? ([
          {
            label: vscode.l10n.t("$(check-all) Always Allow"),
            description: withoutIcons(alwaysWords(request)),
            does: "always",
          },
        ] as const)
      : []),
  ] as const;
  let active: (typeof items)[number] | undefined;
  for (;;) {
    const picked = await pickOne({
      title: vscode.l10n.t("{0}: {1}", title, who),
      placeholder: vscode.l10n.t("Read the request, then answer it."),
      items,
      first: () => (active ? [active] : []),
      ...options,
    });
    if (!picked || picked === BACK) return picked;
    active = picked;
    switch (picked.does) {
      case "show":
        await (diff === undefined
          ? context.openText(request.permission === "bash" ? "command.sh" : `${title}.txt`, subject)
          : context.openText(`${subject}.diff`, visible(diff)));
        continue;
      case "explain": {
        const message = await askText({
          title: vscode.l10n.t("Reject: {0}", excerpt(oneLine(subject), QUESTION_SHOWN)),
          placeholder: vscode.l10n.t("Example: Don't change any files; only report"),
          prompt: vscode.l10n.t("Enter what the agent should do instead. The agent continues with it."),
          text: drafts.reason,
          validate: (text) => (text.trim() ? undefined : vscode.l10n.t("Enter a message for the agent.")),
          keep: (text) => (drafts.reason = text),
          over: options.over,
          canGoBack: true,
        });
        if (message === BACK) continue;
        return message === undefined
          ? undefined
          : { type: "permission", reply: "reject", message: message.trim() };
      }
      default:
        return { type: "permission", reply: picked.does };
    }
  }
}

async function askQuestions(
  context: FlowContext,
  { questions }: QuestionRequest,
  who: string,
  options: AskOptions,
  drafts: Drafts,
): Promise<Answer<RequestAnswer>> {
  const answers: (readonly string[])[] = [];
  for (let at = 0; at < questions.length;) {
    const question = questions[at];
    if (!question) break;
    const header = visible(question.header) || vscode.l10n.t("Question");
    const title =
      questions.length === 1
        ? vscode.l10n.t("{0}: {1}", header, who)
        : vscode.l10n.t("{0} ({1}/{2}): {3}", header, at + 1, questions.length, who);
    const draft = (drafts.answers[at] ??= { labels: [], own: "" });
    const canGoBack = at > 0 || options.canGoBack;
    const given = await askQuestion(context, question, draft, { title, over: options.over, canGoBack });
    if (given === "dismiss") return { type: "dismiss" };
    if (given === undefined || (given === BACK && at === 0)) return given;
    if (given === BACK) at--;
    else answers[at++] = given;
  }
  return { type: "question", answers };
}

type QuestionButton = StepButton<"dismiss" | "show">;

async function askQuestion(
  context: FlowContext,
  { question, options, multiple, custom }: Question,
  draft: Drafts["answers"][number],
  step: { readonly title: string; readonly over: AbortSignal; readonly canGoBack: boolean },
): Promise<Answer<readonly string[] | "dismiss">> {
  const isOwnAlone = options.length === 0;
  const placeholder = visible(oneLine(question));
  const own = {
    label: vscode.l10n.t("$(edit) Other Answer…"),
    description: withoutIcons(draft.own),
    answer: undefined,
  };
  const items = [
    ...options.map(({ label, description }) => ({
      label: withoutIcons(visible(label)),
      description: withoutIcons(visible(oneLine(description))),
      answer: label,
    })),
    ...(custom ? [own] : []),
  ];
  const buttons: readonly QuestionButton[] = [
    ...(placeholder.length > QUESTION_SHOWN || question.includes("\n")
      ? [button("eye", vscode.l10n.t("Read the Whole Question"), "show" as const)]
      : []),
    button("circle-slash", vscode.l10n.t("Dismiss the question. The agent stops."), "dismiss"),
  ];
  for (;;) {
    const chosen = items.filter(({ answer }) =>
      answer === undefined ? draft.own !== "" : draft.labels.includes(answer),
    );
    const list = { ...step, placeholder, items, buttons, first: () => chosen };
    const picked = isOwnAlone ? [own] : multiple ? await pickSome(list) : await pickOne(list);
    if (picked === undefined || picked === BACK || picked === "dismiss") return picked;
    if (picked === "show") {
      await context.openText(`${step.title}.md`, question);
      continue;
    }
    const rows = "label" in picked ? [picked] : picked;
    draft.labels = rows.flatMap(({ answer }) => answer ?? []);
    if (!rows.includes(own)) return draft.labels;
    const text = await askText({
      ...step,
      placeholder: "",
      prompt: visible(question),
      text: draft.own,
      validate: (written) => (written.trim() ? undefined : vscode.l10n.t("Enter an answer, or go back.")),
      keep: (written) => (draft.own = written),
      canGoBack: step.canGoBack || !isOwnAlone,
    });
    if (text === BACK && !isOwnAlone) continue;
    return text === undefined || text === BACK ? text : [...draft.labels, text.trim()];
  }
}

function button<B>(icon: string, tooltip: string, gives: B): StepButton<B> {
  return { iconPath: new vscode.ThemeIcon(icon), tooltip, gives };
}

/** The part of a command or path that a row shows; the full text opens as a document. */
function shown(subject: string): string {
  return withoutIcons(excerpt(oneLine(subject), SUBJECT_SHOWN));
}
