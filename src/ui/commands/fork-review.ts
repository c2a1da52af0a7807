import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import type { ForkPreview } from "../../engine/fork/preview.ts";
import { humanMessage } from "../messages.ts";
import { withoutIcons } from "../plain-text.ts";
import type { ForkDraft, LaunchPlan } from "../launch-plan.ts";
import { aside, askChoice, askText, type ListItem, pickOne, type Choice } from "../quick-input.ts";
import { type Answer, BACK, type Place, type Step } from "../wizard.ts";
import type { LaunchContext } from "./command.ts";
import { pickAgent } from "./launch-options.ts";
import type { Launching } from "./launching.ts";

const EXCERPT_LENGTH = 80;
/** A plan with a fork. */
type ForkPlan = LaunchPlan & { readonly fork: ForkDraft };

const SHORT_TIME = { dateStyle: "short", timeStyle: "short" } as const;

type Action = "launch" | "again" | "show" | "limit" | "start" | "agent";

interface ActionItem extends ListItem {
  readonly action?: Action;
}

/** Shows what a fork would inherit, and lets the user change it. */
export const review: Step<Launching> = {
  applies: ({ plan }) => plan.fork !== undefined,
  take: async (state, place) => {
    const { context, plan } = state;
    const { fork } = plan;
    if (!fork) return { state };
    const { picked, preview } = await showReview(context, { ...plan, fork }, place);
    if (picked === undefined || picked === BACK) return picked;
    if (picked.action === "launch") return { state };
    if (picked.action === "show" && preview)
      await context.openText(vscode.l10n.t("Fork of {0}.md", fork.title), preview.text);
    const change = await changed(context, { ...plan, fork }, picked.action, preview);
    return { state: { ...state, plan: { ...plan, ...change } }, to: review };
  },
};

/** Asks the user about one part of the plan, and returns the new values. */
async function changed(
  context: LaunchContext,
  { agents, fork }: ForkPlan,
  action: Action | undefined,
  preview: ForkPreview | undefined,
): Promise<Partial<LaunchPlan>> {
  switch (action) {
    case "limit":
      return { fork: (await aside(askLimit(fork, preview))) ?? fork };
    case "start":
      return { fork: (await aside(askStart(context, fork))) ?? fork };
    case "agent": {
      const heading = { title: vscode.l10n.t("Fork: Agent"), canGoBack: true };
      const agent = await aside(pickAgent(context, heading, agents[0]));
      return agent === undefined ? {} : { agents: [agent] };
    }
    default:
      return {};
  }
}

async function showReview(
  { known, logger }: LaunchContext,
  plan: ForkPlan,
  place: Place,
): Promise<{ readonly picked: Answer<ActionItem>; readonly preview: ForkPreview | undefined }> {
  const reading = new AbortController();
  let preview: ForkPreview | undefined;
  const items = known.previewFork(plan.fork.request, reading.signal).then(
    (found) => {
      preview = found;
      return [launchItem(found), ...changeItems(plan, found)];
    },
    (error: unknown) => {
      if (!reading.signal.aborted) logger.error("Couldn't read the conversation.", error);
      return [tryAgainItem(error), ...changeItems(plan)];
    },
  );
  const picked = await pickOne<ActionItem>({
    title: vscode.l10n.t("Fork: {0}", plan.fork.title),
    ...place,
    placeholder: vscode.l10n.t("Review what the task inherits, then launch it."),
    items,
    meanwhile: [{ label: vscode.l10n.t("$(loading~spin) Reading the conversation…") }],
  });
  reading.abort();
  return { picked, preview };
}

function launchItem(preview: ForkPreview): ActionItem {
  return { label: vscode.l10n.t("$(repo-forked) Launch"), detail: summary(preview), action: "launch" };
}

function tryAgainItem(error: unknown): ActionItem {
  return { label: vscode.l10n.t("$(error) Try Again"), detail: humanMessage(error), action: "again" };
}

/** What the fork keeps and omits, in numbers. */
function summary(preview: ForkPreview): string {
  const { messagesBefore, messagesAfter, tokensBefore, tokensAfter } = preview;
  if (messagesBefore === 0) return vscode.l10n.t("The conversation is empty. The task gets only its prompt.");
  const [tokens, allTokens] = [roughly(tokensAfter.tokens), roughly(tokensBefore.tokens)];
  const parts = [
    messagesAfter === messagesBefore
      ? vscode.l10n.t("Keeps all {0} messages", amount(messagesBefore))
      : vscode.l10n.t("Keeps {0} of {1} messages", amount(messagesAfter), amount(messagesBefore)),
    tokens === allTokens
      ? vscode.l10n.t("about {0} tokens", tokens)
      : vscode.l10n.t("about {0} of {1} tokens", tokens, allTokens),
  ];
  const { shortenedResults, shortenedMessages, leftOutFiles } = preview;
  if (shortenedResults > 0)
    parts.push(
      shortenedResults === 1
        ? vscode.l10n.t("1 tool result shortened")
        : vscode.l10n.t("{0} tool results shortened", amount(shortenedResults)),
    );
  if (shortenedMessages > 0)
    parts.push(
      shortenedMessages === 1
        ? vscode.l10n.t("1 message shortened")
        : vscode.l10n.t("{0} messages shortened", amount(shortenedMessages)),
    );
  if (leftOutFiles > 0)
    parts.push(
      leftOutFiles === 1
        ? vscode.l10n.t("1 large file omitted")
        : vscode.l10n.t("{0} large files omitted", amount(leftOutFiles)),
    );
  return parts.join(" · ");
}

function changeItems({ agents, fork }: ForkPlan, preview?: ForkPreview): readonly ActionItem[] {
  const show = {
    label: vscode.l10n.t("$(eye) Preview What the Agent Sees"),
    action: "show" as const,
  };
  return [
    ...(preview && preview.messagesAfter > 0 ? [show] : []),
    {
      label: vscode.l10n.t("$(symbol-ruler) Token Limit…"),
      description: preview ? amount(preview.limits.maxTokens) : "",
      action: "limit",
    },
    {
      label: vscode.l10n.t("$(list-selection) Select First Message…"),
      description: fork.start ?? vscode.l10n.t("start of the conversation"),
      action: "start",
    },
    { label: vscode.l10n.t("$(person) Agent…"), description: agents.join(", "), action: "agent" },
  ];
}

async function askLimit(draft: ForkDraft, preview: ForkPreview | undefined): Promise<Answer<ForkDraft>> {
  const given = await askText({
    title: vscode.l10n.t("Fork: Token Limit"),
    canGoBack: true,
    placeholder: "",
    prompt: vscode.l10n.t(
      "Enter the maximum number of tokens the task may inherit. Counts are estimates; models count differently.",
    ),
    text: String(draft.request.maxTokens ?? preview?.limits.maxTokens ?? ""),
    isReplaced: true,
    validate: (text) =>
      readLimit(text) === undefined ? vscode.l10n.t("Enter a whole number greater than 0.") : undefined,
  });
  if (given === undefined || given === BACK) return given;
  return { ...draft, request: { ...draft.request, maxTokens: readLimit(given) } };
}

/** Reads a number that may contain thousands separators. Undefined if the value is no valid limit. */
function readLimit(value: string): number | undefined {
  const isNumber = /^(\d+|\d{1,3}([\s.,_'’]\d{3})+)$/.test(value.trim());
  const limit = isNumber ? Number(value.replace(/\D/g, "")) : 0;
  return limit > 0 ? limit : undefined;
}

async function askStart({ known }: LaunchContext, draft: ForkDraft): Promise<Answer<ForkDraft>> {
  const beginning: Choice<ForkStartChoice> = {
    label: vscode.l10n.t("$(arrow-up) Start of the Conversation"),
    value: {},
  };
  const separator = { label: vscode.l10n.t("newest first"), kind: vscode.QuickPickItemKind.Separator };
  const picked = await askChoice<ForkStartChoice>({
    title: vscode.l10n.t("Fork: Start from a Message"),
    canGoBack: true,
    placeholder: vscode.l10n.t("Messages before it are omitted."),
    choices: known.forkStarts(draft.request.sourceSessionID).then((found) => [
      beginning,
      separator,
      ...found.toReversed().map(({ messageID, text, created }) => ({
        label: beginningOf(text),
        description: new Date(created).toLocaleString(vscode.env.language, SHORT_TIME),
        value: { fromMessageID: messageID, start: beginningOf(text) },
      })),
    ]),
  });
  if (picked === undefined || picked === BACK) return picked;
  const { fromMessageID, start } = picked;
  return { ...draft, start, request: { ...draft.request, fromMessageID } };
}

/** Empty if the fork starts at the beginning. */
interface ForkStartChoice {
  readonly fromMessageID?: string;
  readonly start?: string;
}

function beginningOf(text: string): string {
  return withoutIcons(excerpt(oneLine(text), EXCERPT_LENGTH));
}

/** Rounds to two significant digits, because token counts are estimates. */
function roughly(count: number): string {
  return count.toLocaleString(vscode.env.language, { maximumSignificantDigits: 2 });
}

function amount(count: number): string {
  return count.toLocaleString(vscode.env.language);
}
