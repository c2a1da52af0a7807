import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import type { ForkPreview } from "../../engine/fork/preview.ts";
import { humanMessage } from "../human-error.ts";
import { withoutIcons } from "../plain-text.ts";
import { BACK, showInput, askChoice, showStep, type Choice, type Step } from "../quick-input.ts";
import type { LaunchContext, PromptContext } from "./command.ts";
import type { ForkDraft, LaunchPlan } from "../launch-plan.ts";
import { pickAgent } from "./pick-agent.ts";

const EXCERPT_LENGTH = 80;
const SHORT_TIME = { dateStyle: "short", timeStyle: "short" } as const;

type Action = "launch" | "again" | "show" | "limit" | "start" | "agent" | "back";

/** A plan with a fork, as it goes through the review. */
export type ForkPlan = LaunchPlan & { readonly fork: ForkDraft };

interface ActionItem extends vscode.QuickPickItem {
  readonly action: Action | undefined;
}

/** What became of the plan, and where the person goes from here. */
export interface Reviewed {
  readonly plan: ForkPlan;
  readonly goes: "launch" | "back";
}

/** Shows what a fork would inherit, and lets the person change it. Undefined: they changed their mind. */
export async function reviewFork(
  context: LaunchContext,
  plan: ForkPlan,
  step: Step,
): Promise<Reviewed | undefined> {
  for (let current = plan; ;) {
    const { fork } = current;
    const { action, preview } = await showReview(context, current, step);
    switch (action) {
      case undefined:
        return undefined;
      case "launch":
      case "back":
        return { plan: current, goes: action };
      case "again":
        continue;
      case "show":
        if (preview) await context.openText(vscode.l10n.t("Fork of {0}.md", fork.title), preview.text);
        continue;
      case "limit":
        current = { ...current, fork: (await changeLimit(fork, preview)) ?? fork };
        continue;
      case "start":
        current = { ...current, fork: (await changeStart(context, fork)) ?? fork };
        continue;
      case "agent": {
        const agentStep = { title: vscode.l10n.t("Fork: Agent"), canGoBack: true };
        const agent = await pickAgent(context, agentStep, current.agents[0]);
        if (agent !== undefined && agent !== BACK) current = { ...current, agents: [agent] };
      }
    }
  }
}

async function showReview(
  { known, logger }: PromptContext,
  plan: ForkPlan,
  step: Step,
): Promise<{ readonly action: Action | undefined; readonly preview: ForkPreview | undefined }> {
  const pick = vscode.window.createQuickPick<ActionItem>();
  const reading = new AbortController();
  let preview: ForkPreview | undefined;
  showStep(pick, step);
  pick.placeholder = vscode.l10n.t("See what the task inherits, then launch it.");
  pick.busy = true;
  pick.items = [{ label: vscode.l10n.t("$(loading~spin) Reading the conversation…"), action: undefined }];
  known
    .previewFork(plan.fork.request, reading.signal)
    .then(
      (found) => {
        preview = found;
        pick.items = [launchItem(found), ...changeItems(plan, found)];
      },
      (error: unknown) => {
        if (reading.signal.aborted) return;
        logger.error("The conversation could not be read.", error);
        pick.items = [tryAgainItem(error), ...changeItems(plan)];
      },
    )
    .finally(() => (pick.busy = false));
  const action = await showInput<Action>(pick, (finish) => {
    pick.onDidAccept(() => {
      const chosen = pick.selectedItems[0]?.action;
      if (chosen) finish(chosen);
    });
    pick.onDidTriggerButton(() => finish("back"));
  });
  reading.abort();
  return { action, preview };
}

function launchItem(preview: ForkPreview): ActionItem {
  return { label: vscode.l10n.t("$(repo-forked) Launch"), detail: summary(preview), action: "launch" };
}

function tryAgainItem(error: unknown): ActionItem {
  return { label: vscode.l10n.t("$(error) Try Again"), detail: humanMessage(error), action: "again" };
}

/** What is kept and what is not, in numbers. */
export function summary(preview: ForkPreview): string {
  const { messagesBefore, messagesAfter, tokensBefore, tokensAfter } = preview;
  if (messagesBefore === 0)
    return vscode.l10n.t("The conversation is empty: the task gets its prompt alone.");
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
        ? vscode.l10n.t("1 large file left out")
        : vscode.l10n.t("{0} large files left out", amount(leftOutFiles)),
    );
  return parts.join(" · ");
}

function changeItems({ agents, fork }: ForkPlan, preview?: ForkPreview): readonly ActionItem[] {
  const show = {
    label: vscode.l10n.t("$(eye) Show What the Agent Will See"),
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
      label: vscode.l10n.t("$(list-selection) Start from a Message…"),
      description: fork.start ?? vscode.l10n.t("the beginning"),
      action: "start",
    },
    { label: vscode.l10n.t("$(person) Agent…"), description: agents.join(", "), action: "agent" },
  ];
}

/** Undefined: it stays as it is. */
function changeLimit(draft: ForkDraft, preview: ForkPreview | undefined): Promise<ForkDraft | undefined> {
  const box = vscode.window.createInputBox();
  showStep(box, { title: vscode.l10n.t("Fork: Token Limit"), canGoBack: true });
  box.prompt = vscode.l10n.t(
    "How many tokens may the task inherit? They are estimated; models count differently.",
  );
  box.value = String(draft.request.maxTokens ?? preview?.limits.maxTokens ?? "");
  box.valueSelection = [0, box.value.length];
  const validate = (): number | undefined => {
    const maxTokens = readLimit(box.value);
    box.validationMessage =
      maxTokens === undefined ? vscode.l10n.t("Write a whole number greater than 0.") : undefined;
    return maxTokens;
  };
  return showInput(box, (finish) => {
    box.onDidChangeValue(validate);
    box.onDidAccept(() => {
      const maxTokens = validate();
      if (maxTokens !== undefined) finish({ ...draft, request: { ...draft.request, maxTokens } });
    });
    box.onDidTriggerButton(() => box.hide());
  });
}

/** A number that may have its thousands apart. Undefined: it is none. */
function readLimit(value: string): number | undefined {
  const isNumber = /^(\d+|\d{1,3}([\s.,_'’]\d{3})+)$/.test(value.trim());
  const limit = isNumber ? Number(value.replace(/\D/g, "")) : 0;
  return limit > 0 ? limit : undefined;
}

/** Undefined: it stays as it is. */
async function changeStart({ known }: PromptContext, draft: ForkDraft): Promise<ForkDraft | undefined> {
  const beginning: Choice<ForkStartChoice> = {
    label: vscode.l10n.t("$(arrow-up) The beginning"),
    value: {},
  };
  const separator = { label: vscode.l10n.t("newest first"), kind: vscode.QuickPickItemKind.Separator };
  const picked = await askChoice<ForkStartChoice>({
    title: vscode.l10n.t("Fork: Start from a Message"),
    canGoBack: true,
    placeholder: vscode.l10n.t("Messages before it are left out."),
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
  if (picked === undefined || picked === BACK) return undefined;
  const { fromMessageID, start } = picked;
  return { ...draft, start, request: { ...draft.request, fromMessageID } };
}

/** Empty: the beginning. */
interface ForkStartChoice {
  readonly fromMessageID?: string;
  readonly start?: string;
}

function beginningOf(text: string): string {
  return withoutIcons(excerpt(oneLine(text), EXCERPT_LENGTH));
}

/** In two digits that count: tokens are estimated. */
function roughly(count: number): string {
  return count.toLocaleString(vscode.env.language, { maximumSignificantDigits: 2 });
}

function amount(count: number): string {
  return count.toLocaleString(vscode.env.language);
}
