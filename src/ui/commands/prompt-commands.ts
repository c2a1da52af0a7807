import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { connectedFolder, folderGone } from "../folders/require-folder.ts";
import type { Folder } from "../folders/folder.ts";
import type { LaunchPlan, PromptTarget } from "../launch-plan.ts";
import { setText } from "../prompt-editor/editor-text.ts";
import { joinSections, splitSections } from "../prompt-editor/sections.ts";
import type { PromptContext } from "./command.ts";
import { chooseOptions, launchFromEditor, launchTextAsking } from "./launch-wizard.ts";
import { PartlyLaunched } from "./launching.ts";

/**
 * Launches or resumes with the text of a prompt editor; in another editor, launches the selection or the whole text.
 */
export async function launchPrompt(context: PromptContext, uri: unknown): Promise<void> {
  const document = findDocument(uri);
  const target = context.promptEditors.target(document.uri);
  if (target) return submit(context, document, target);
  const { selection } = vscode.window.activeTextEditor ?? {};
  const text = document.getText(selection?.isEmpty ? undefined : selection);
  requireText(text);
  await launchTextAsking(context, text, { isInEditor: true });
}

export async function promptOptions(context: PromptContext, uri: unknown): Promise<void> {
  const document = findDocument(uri);
  const target = requireTarget(context, document);
  if (target.kind === "resume") return;
  const folder = await connectedFolder(context.folders, folderOfPlan(context, target.plan));
  const prompts = promptsOf(target.plan, document.getText());
  const { plan, isAgreed } = await chooseOptions({ ...context, folder }, target.plan, prompts);
  context.promptEditors.setTarget(document.uri, { ...target, plan });
  if (isAgreed) await submit(context, document, { ...target, plan });
}

/** Sets whether the sections of a prompt editor are separate prompts. */
export async function splitPrompt(
  { promptEditors }: PromptContext,
  uri: unknown,
  splits: unknown,
): Promise<void> {
  if (!(uri instanceof vscode.Uri)) return;
  const target = promptEditors.target(uri);
  if (target?.kind !== "launch") return;
  promptEditors.setTarget(uri, { ...target, plan: { ...target.plan, splits: splits === true } });
}

/** Submits the text, and closes the document if the text was accepted. */
async function submit(
  context: PromptContext,
  document: vscode.TextDocument,
  target: PromptTarget,
): Promise<void> {
  const { promptEditors, tasks, reveal } = context;
  await promptEditors.submit(document, async (text) => {
    requireText(text);
    const { folders } = context;
    if (target.kind === "resume") {
      await connectedFolder(folders, folders.of(target.taskID));
      const { id } = await tasks.resume(target.taskID, text);
      reveal(id);
      return true;
    }
    const folder = await connectedFolder(folders, folderOfPlan(context, target.plan));
    try {
      const prompts = promptsOf(target.plan, text);
      const { plan, isLaunched } = await launchFromEditor({ ...context, folder }, target.plan, prompts);
      promptEditors.setTarget(document.uri, { ...target, plan });
      return isLaunched;
    } catch (error) {
      if (error instanceof PartlyLaunched) await keepRest(context, document, text, target.plan, error);
      throw error;
    }
  });
}

/** Undefined if the plan names no folder. */
function folderOfPlan({ folders }: PromptContext, plan: LaunchPlan): Folder | undefined {
  if (plan.folder === undefined) return undefined;
  const folder = folders.all.find(({ uri }) => uri.toString() === plan.folder);
  if (folder) return folder;
  throw folderGone();
}

/** Leaves only the unlaunched prompts in the editor, unless its text has changed in the meantime. */
async function keepRest(
  { promptEditors }: PromptContext,
  document: vscode.TextDocument,
  text: string,
  plan: LaunchPlan,
  { prompts, agents }: PartlyLaunched,
): Promise<void> {
  if (document.getText() !== text) return;
  promptEditors.setTarget(document.uri, { kind: "launch", plan: { ...plan, agents } });
  if (plan.splits) await setText(document, joinSections(prompts));
}

function promptsOf({ splits }: LaunchPlan, text: string): readonly string[] {
  if (splits) return splitSections(text);
  return text.trim() === "" ? [] : [text];
}

function requireText(text: string): void {
  if (text.trim() === "") throw new Refusal("empty-prompt", sentence("Write a prompt, then launch it."));
}

/** The document that a menu or code lens is about, otherwise the one in the active editor. */
function findDocument(uri: unknown): vscode.TextDocument {
  const wanted = uri instanceof vscode.Uri ? uri.toString() : undefined;
  const document =
    wanted === undefined
      ? vscode.window.activeTextEditor?.document
      : vscode.workspace.textDocuments.find((each) => each.uri.toString() === wanted);
  if (document) return document;
  throw new Refusal("invalid-argument", sentence("Write the prompt in an editor."));
}

function requireTarget({ promptEditors }: PromptContext, { uri }: vscode.TextDocument): PromptTarget {
  const target = promptEditors.target(uri);
  if (target) return target;
  throw new Refusal(
    "invalid-argument",
    sentence("This editor wasn't opened for a prompt. Run \"Launch Editor's Text as Prompt\"."),
  );
}
