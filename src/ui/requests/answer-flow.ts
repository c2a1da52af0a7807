import * as vscode from "vscode";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { ServerFailure } from "../../engine/ports.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import type { Question, RequestAnswer } from "../../engine/server-model.ts";
import type { PromptContext } from "../commands/command.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { inform, offerCopy } from "../dialogs.ts";
import { showError, translate } from "../messages.ts";
import { visible, withoutIcons } from "../plain-text.ts";
import { askText, pickOne, pickSome, type StepButton } from "../quick-input.ts";
import { BACK, type Answer, runWizard, type Step } from "../wizard.ts";
import { asker } from "./asker.ts";

/** What answering requests needs. */
export type FlowContext = Pick<
  PromptContext,
  "known" | "folders" | "tasks" | "memory" | "openText" | "logger"
>;

/** Lists cut longer questions. */
const QUESTION_SHOWN = 90;
/** Longer subjects leave no room for the rest of the row. */
const SUBJECT_SHOWN = 60;

/** How long a request may wait for its explanation before it is shown, in milliseconds. */
const EXPLANATION_MS = 1_000;

/** What the user answered so far. Their texts are drafts, which are kept until an answer is sent. */
interface Answering {
  /** The answer if it is complete before all questions are answered. */
  readonly reply?: RequestAnswer | undefined;
  /** The chosen labels and the text of each question. */
  readonly answers: readonly (readonly string[])[];
  /** What the user did last with a permission request. */
  readonly active?: string;
}

/** A request that is being answered. */
interface Asked<T extends MirroredRequest["type"] = MirroredRequest["type"]> {
  readonly context: FlowContext;
  readonly request: MirroredRequest & { readonly type: T };
  /** The agent that asks. */
  readonly who: string;
  /** Aborts when the request is no longer open. */
  readonly over: AbortSignal;
}

interface Choosing {
  readonly open?: OpenRequest<MirroredRequest> | undefined;
  readonly given?: RequestAnswer;
}

/** Lets the user pick one of the open requests, oldest first, and answer it. */
export async function answerOneOf(
  context: FlowContext,
  requests: () => readonly OpenRequest<MirroredRequest>[],
): Promise<RequestAnswer | undefined> {
  const choose: Step<Choosing> = {
    take: async (state) => {
      const picked = await pickRequest(context.known, requests());
      if (picked === "changed") return { state, to: choose };
      return picked === undefined || picked === BACK ? picked : { state: { open: picked } };
    },
  };
  const answer: Step<Choosing> = {
    take: async ({ open }) => {
      // A list that shrinks to one request stays open: an Enter that is about to be pressed must not answer something
      // else.
      const given = open && (await answerRequest(context, open, open !== only));
      return given === undefined || given === BACK ? given : { state: { given } };
    },
  };
  const [first, ...others] = requests();
  const only = others.length === 0 ? first : undefined;
  const { state } = await runWizard([choose, answer], { open: only }, { first: only ? 1 : 0 });
  return state.given;
}

/**
 * Lets the user answer a request, and sends the answer. Undefined if they left, or if the request is no longer open.
 */
export async function answerRequest(
  context: FlowContext,
  { request, child }: OpenRequest<MirroredRequest>,
  canGoBack = false,
): Promise<Answer<RequestAnswer>> {
  const { known, tasks, memory, logger } = context;
  const over = new AbortController();
  const check = (): void => {
    if (!known.openRequests().some((each) => each.request.id === request.id)) over.abort();
  };
  const subscription = known.onDidChangeRequests(check);
  check();
  const about = { context, who: asker(child), over: over.signal };
  const questions =
    request.type === "permission"
      ? [permissionStep({ ...about, request })]
      : request.questions.map((question, at) => questionStep({ ...about, request }, question, at));
  const send: Step<Answering> = {
    take: async ({ reply, answers }) => {
      const given = reply ?? { type: "question", answers };
      try {
        await tasks.answer(request, given);
        return { state: { reply: given, answers } };
      } catch (error) {
        if (isUnknown(error)) over.abort();
        else void showError(error, logger);
        return { state: { answers }, to: questions[0] ?? "end" };
      }
    },
  };
  const { state, end } = await runWizard([...questions, send], { answers: [] }, { canGoBack }).finally(() =>
    subscription.dispose(),
  );
  if (end === "finished") {
    dropDrafts(memory, request);
    return state.reply;
  }
  if (!over.signal.aborted) return end === "back" ? BACK : undefined;
  showAnswered(draftNames(request).map((name) => memory.draft(name)));
  dropDrafts(memory, request);
  return undefined;
}

/** The draft name for a rejection message, or for the custom answer to one of the questions. */
function draftName({ id }: MirroredRequest, question?: number): string {
  return question === undefined ? `reject ${id}` : `answer ${id} ${question}`;
}

function draftNames(request: MirroredRequest): readonly string[] {
  return request.type === "permission"
    ? [draftName(request)]
    : request.questions.map((_, at) => draftName(request, at));
}

function dropDrafts(memory: FlowContext["memory"], request: MirroredRequest): void {
  for (const name of draftNames(request)) memory.keepDraft(name, "");
}

/** Whether the server no longer knows the answered request. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ServerFailure && error.reason === "not-found";
}

/** Says that a request is no longer open, and offers to copy what was written for it. */
export function showAnswered(texts: readonly string[] = []): void {
  const written = texts.filter(Boolean);
  const message = vscode.l10n.t("Already answered, or the agent stopped.");
  if (written.length === 0) return inform(message);
  void offerCopy(message, written.join("\n"));
}

async function pickRequest(
  known: Pick<Tasks, "onDidChangeRequests">,
  open: readonly OpenRequest<MirroredRequest>[],
): Promise<OpenRequest<MirroredRequest> | typeof BACK | "changed" | undefined> {
  if (open.length === 0) return void inform(vscode.l10n.t("No agent is waiting for you."));
  const changed = new AbortController();
  const subscription = known.onDidChangeRequests(() => changed.abort());
  const picked = await pickOne({
    title: vscode.l10n.t("Waiting for You ({0})", open.length),
    placeholder: vscode.l10n.t("Select a request to answer, oldest first"),
    canGoBack: false,
    over: changed.signal,
    items: open.map((one) => {
      const { icon, title, subject } = one.request;
      return {
        label: `$(${icon}) ${shown(subject)}`,
        description: withoutIcons(asker(one.child)),
        detail: withoutIcons(translate(title)),
        open: one,
      };
    }),
  });
  subscription.dispose();
  if (changed.signal.aborted) return "changed";
  return picked === BACK ? BACK : picked?.open;
}

/** The request as the server explains it; as it is if that fails or takes long. */
export function explain<T extends MirroredRequest>(
  known: Pick<Tasks, "explainRequest">,
  request: T,
): Promise<T> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(request), EXPLANATION_MS);
    known.explainRequest(request).then(
      (explained) => resolve((explained as T | undefined) ?? request),
      () => resolve(request),
    );
  });
}

function permissionStep({ context, request, who, over }: Asked<"permission">): Step<Answering> {
  const { diff, always } = request;
  const { known, memory, openText } = context;
  // Enter takes the first row, which allows nothing. The row that allows most is the last one.
  const rows = ({ icon, subject, reason }: typeof request) =>
    [
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
        label: vscode.l10n.t("$(comment) Reject with Message…"),
        description: vscode.l10n.t("The agent tries another way."),
        does: "explain",
      },
      ...(always
        ? ([
            {
              label: vscode.l10n.t("$(check-all) Always Allow"),
              detail: withoutIcons(translate(always)),
              does: "always",
            },
          ] as const)
        : []),
    ] as const;
  const decide: Step<Answering> = {
    take: async (state, place) => {
      const explained = await explain(known, request);
      const title = translate(explained.title);
      const picked = await pickOne({
        title: vscode.l10n.t("{0}: {1}", title, who),
        placeholder: vscode.l10n.t("Read the request, then answer it."),
        items: rows(explained),
        first: (items) => items.filter(({ does }) => does === state.active).slice(0, 1),
        over,
        ...place,
      });
      if (!picked || picked === BACK) return picked;
      const { does } = picked;
      const next = { ...state, active: does };
      if (does === "explain") return { state: next, to: refuse };
      if (does !== "show") return { state: { ...next, reply: { type: "permission", reply: does } } };
      // However long that takes: what is missing must not count as all there is.
      const { subject, subjects } = { ...explained, ...(await known.explainRequest(request)) };
      await (diff === undefined
        ? openText(
            request.permission === "bash" ? "command.sh" : `${title}.txt`,
            subjects.join("\n\n") || subject,
          )
        : openText(`${subject}.diff`, diff));
      return { state: next, to: decide };
    },
  };
  const refuse: Step<Answering> = {
    take: async (state, place) => {
      const text = await askText({
        title: vscode.l10n.t("Reject: {0}", excerpt(oneLine(request.subject), QUESTION_SHOWN)),
        placeholder: vscode.l10n.t("Example: Don't change any files; only report"),
        prompt: vscode.l10n.t("Enter what the agent should do instead. The agent continues with it."),
        text: memory.draft(draftName(request)),
        validate: (written) => (written.trim() ? undefined : vscode.l10n.t("Enter a message for the agent.")),
        keep: (written) => memory.keepDraft(draftName(request), written),
        over,
        ...place,
      });
      if (text === undefined || text === BACK) return text;
      return { state: { ...state, reply: { type: "permission", reply: "reject", message: text.trim() } } };
    },
  };
  return decide;
}

type QuestionButton = StepButton<"dismiss" | "show">;

/** Asks one of the questions: for one or more of its options, or for a text, or both. */
function questionStep(
  { context, request, who, over }: Asked<"question">,
  { question, header, options, multiple, custom }: Question,
  at: number,
): Step<Answering> {
  const { memory, openText } = context;
  const draft = draftName(request, at);
  const title = vscode.l10n.t("{0}: {1}", visible(header) || vscode.l10n.t("Question"), who);
  const placeholder = visible(oneLine(question));
  const isOwnAlone = options.length === 0;
  const chosenLabels = ({ answers }: Answering): readonly string[] =>
    (answers[at] ?? []).filter((answer) => options.some(({ label }) => label === answer));
  const answered = (state: Answering, given: readonly string[]): Answering => {
    const answers = request.questions.map((_, each) => (each === at ? given : (state.answers[each] ?? [])));
    return { ...state, answers };
  };
  const applies = ({ reply }: Answering): boolean => reply === undefined;
  const buttons: readonly QuestionButton[] = [
    ...(placeholder.length > QUESTION_SHOWN || question.includes("\n")
      ? [button("eye", vscode.l10n.t("Read the Whole Question"), "show" as const)]
      : []),
    button("circle-slash", vscode.l10n.t("Dismiss the question. The agent stops."), "dismiss"),
  ];
  const choose: Step<Answering> = {
    applies,
    take: async (state, place) => {
      const text = memory.draft(draft);
      const own = {
        label: vscode.l10n.t("$(edit) Other Answer…"),
        description: withoutIcons(text),
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
      const before = chosenLabels(state);
      const chosen = items.filter(({ answer }) =>
        answer === undefined ? text !== "" : before.includes(answer),
      );
      let ticked: readonly (typeof items)[number][] = chosen;
      const list = { title, placeholder, items, buttons, over, first: () => chosen, ...place };
      const picked = multiple
        ? await pickSome({ ...list, follow: (selected) => (ticked = selected) })
        : await pickOne(list);
      if (picked === undefined || picked === BACK) return picked;
      if (picked === "dismiss") return { state: { ...state, reply: { type: "dismiss" } } };
      if (picked === "show") {
        await openText(`${title}.md`, question);
        return {
          state: answered(
            state,
            ticked.flatMap(({ answer }) => answer ?? []),
          ),
          to: choose,
        };
      }
      const rows = "label" in picked ? [picked] : picked;
      const next = answered(
        state,
        rows.flatMap(({ answer }) => answer ?? []),
      );
      return rows.includes(own) ? { state: next, to: write } : { state: next };
    },
  };
  const write: Step<Answering> = {
    applies,
    take: async (state, place) => {
      const text = await askText({
        title,
        placeholder: "",
        prompt: visible(question),
        text: memory.draft(draft),
        validate: (written) => (written.trim() ? undefined : vscode.l10n.t("Enter an answer, or go back.")),
        keep: (written) => memory.keepDraft(draft, written),
        over,
        ...place,
      });
      if (text === undefined || text === BACK) return text;
      return { state: answered(state, [...chosenLabels(state), text.trim()]) };
    },
  };
  return isOwnAlone ? write : choose;
}

function button<B>(icon: string, tooltip: string, gives: B): StepButton<B> {
  return { iconPath: new vscode.ThemeIcon(icon), tooltip, gives };
}

/** The part of a command or path that a row shows; the full text opens as a document. */
function shown(subject: string): string {
  return withoutIcons(excerpt(oneLine(subject), SUBJECT_SHOWN));
}
