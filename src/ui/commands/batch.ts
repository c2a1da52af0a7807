import * as vscode from "vscode";
import { connectedFolder } from "../folders/connected-folder.ts";
import { folderTitle } from "../folders/folder-title.ts";
import { humanMessage } from "../human-error.ts";
import { joinSections } from "../prompt-editor/sections.ts";
import { BACK } from "../quick-input.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { LaunchContext, PromptContext } from "./command.ts";
import { PartlyLaunched } from "./launch-together.ts";
import { launchReviewed } from "./launch-reviewed.ts";

/** The name under which prompts that were written and not launched are kept. */
const DRAFT = "batch";

export async function launchBatch(context: PromptContext): Promise<void> {
  await launchAsking({ ...context, folder: await connectedFolder(context.folders) });
}

/** Asks for the prompts, where they are not selected in the editor, then for the agents. */
async function launchAsking(context: LaunchContext): Promise<void> {
  const { memory, logger } = context;
  const selected = selectedTexts();
  let problem: string | undefined;
  for (;;) {
    const prompts = selected ?? (await askPrompts(context, problem));
    if (!prompts) return;
    const draft = selected ? undefined : { name: DRAFT, text: memory.draft(DRAFT) };
    try {
      const step = { ...(selected ? {} : { step: 2, totalSteps: 2 }), canGoBack: !selected };
      const { result } = await launchReviewed(context, { agents: [], splits: true }, prompts, step, draft);
      if (result !== BACK) return;
    } catch (error) {
      if (!draft) throw error;
      logger.error("The batch was not launched.", error);
      if (error instanceof PartlyLaunched && memory.draft(DRAFT) === draft.text)
        memory.keepDraft(DRAFT, error.prompts.join(" | "));
      problem = humanMessage(error);
    }
  }
}

/** One prompt for each selection of the active editor, where there are several. */
function selectedTexts(): readonly string[] | undefined {
  const editor = vscode.window.activeTextEditor;
  const texts = (editor?.selections ?? [])
    .map((each) => editor?.document.getText(each).trim() ?? "")
    .filter(Boolean);
  return texts.length > 1 ? texts : undefined;
}

/** Undefined: the person changed their mind, or writes on in an editor. */
async function askPrompts(
  { memory, promptEditors, folders, folder }: LaunchContext,
  problem: string | undefined,
): Promise<readonly string[] | undefined> {
  const answer = await askPrompt(memory, {
    title: folderTitle(folders, folder, vscode.l10n.t("Launch Batch: Prompts")),
    step: 1,
    totalSteps: 2,
    hint: vscode.l10n.t("One prompt for each task, separated by |. In an editor: by lines of ---."),
    placeholder: vscode.l10n.t("For example: review the parser | review the printer"),
    draft: DRAFT,
    problem,
    isEmpty: (text) => splitPrompts(text).length === 0,
  });
  if (answer?.goes !== "editor") return answer && splitPrompts(answer.text);
  await promptEditors.open(
    { kind: "launch", plan: { agents: [], splits: true, folder: folder.uri.toString() } },
    joinSections(splitPrompts(answer.text)),
  );
  memory.dropDraft(DRAFT, answer.text);
  return undefined;
}

function splitPrompts(text: string): readonly string[] {
  return text
    .split(/\r?\n|\|/)
    .map((prompt) => prompt.trim())
    .filter(Boolean);
}
