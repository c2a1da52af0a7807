import * as vscode from "vscode";
import { invalidArgument, Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Task } from "../../engine/task.ts";
import {
  changeSubject,
  distinct,
  fileSubject,
  editorVariables,
  problemsIn,
  problemSubject,
  type Selected,
  selectionSubject,
} from "../editor/subjects.ts";
import { openDocument } from "../editor/place.ts";
import {
  type Subject,
  type LaunchPlan,
  type PromptTarget,
  joinSections,
  launchesOf,
  splitSections,
} from "../launch-plan.ts";
import { connectedFolder, type Folders, folderGone, type Folder } from "../folders/folders.ts";
import { aside } from "../quick-input.ts";
import type { PromptContext, TaskContext } from "./command.ts";
import { launchAsking, launchTextAsking, chooseOptions, launchFromEditor } from "./launch-wizard.ts";
import { namedPrompt, pickPrompt } from "./ask-prompt.ts";
import { setText } from "../prompt-editors.ts";
import { PartlyLaunched } from "./launching.ts";
import { remedied } from "../worktrees/isolated-task.ts";
import { modelText } from "../../engine/model-ref.ts";
import { withoutIcons } from "../plain-text.ts";

/** What a task can be launched on. */
export type SubjectKind = "selection" | "file" | "problem" | "change";

/** Reads the subject from the arguments that a menu passes; without any, from the active editor. */
const READ: Readonly<Record<SubjectKind, (given: readonly unknown[], folders: Folders) => Promise<Subject>>> =
  {
    /** A `Location`; otherwise the selection. */
    selection: async ([place]) => selectionSubject(await selected(place)),
    /** One or more files or folders; otherwise the file in the active editor. */
    file: async ([uri, uris]) => {
      const given = [...urisIn(uris), ...urisIn(uri)];
      const active = vscode.window.activeTextEditor?.document.uri;
      return fileSubject(distinct(given.length > 0 || !active ? given : [active]));
    },
    /** The given problems of a file, or all of its problems; otherwise those at the cursor. */
    problem: async ([uri, problems]) => {
      if (!(uri instanceof vscode.Uri)) {
        const { document, range } = await selected(undefined);
        return problemSubject(document, problemsAt(document, range));
      }
      const document = await vscode.workspace.openTextDocument(uri);
      return problemSubject(document, problemsGiven(problems) ?? vscode.languages.getDiagnostics(uri));
    },
    /** Uncommitted changes: of the files of a source control row; otherwise of the whole repository. */
    change: async (given, folders) => {
      const edited = vscode.window.activeTextEditor?.document.uri;
      const places = [repositoryIn(given), edited, folders.current?.uri];
      return changeSubject(
        distinct(given.flatMap(urisIn)),
        places.filter((place) => place !== undefined),
      );
    },
  };

/** Launches on what a menu or a key names, otherwise on what the user picks. */
export async function launchOn(
  context: PromptContext,
  ...given: readonly unknown[]
): Promise<Task | undefined> {
  const [first, ...rest] = given;
  const named = isSubjectKind(first);
  const kind = named ? first : (kindOf(given) ?? (await askKind()));
  return kind && launchAsking(context, await readSubject(context, kind, named ? rest : given));
}

function isSubjectKind(value: unknown): value is SubjectKind {
  return typeof value === "string" && value in READ;
}

/** The kind of subject that a menu's arguments stand for; undefined without arguments. */
function kindOf([place, places]: readonly unknown[]): SubjectKind | undefined {
  if (typeof place !== "object" || place === null) return undefined;
  if (place instanceof vscode.Location) return "selection";
  if (!(place instanceof vscode.Uri)) return "change";
  // The Explorer also passes the selected rows, the editor's menu only its document.
  const { document, selection } = vscode.window.activeTextEditor ?? {};
  const isInEditor = !Array.isArray(places) && document?.uri.toString() === place.toString();
  return isInEditor && selection?.isEmpty === false ? "selection" : "file";
}

async function askKind(): Promise<SubjectKind | undefined> {
  const editor = vscode.window.activeTextEditor;
  const words: Readonly<Record<SubjectKind, string>> = {
    selection: vscode.l10n.t("Selection"),
    problem: vscode.l10n.t("Problem at the Cursor"),
    file: vscode.l10n.t("File in the Editor"),
    change: vscode.l10n.t("Changes Since the Last Commit"),
  };
  const kinds: SubjectKind[] = ["change"];
  if (editor) kinds.unshift("file");
  if (editor && problemsAt(editor.document, editor.selection).length > 0) kinds.unshift("problem");
  if (editor?.selection.isEmpty === false) kinds.unshift("selection");
  const picked = await vscode.window.showQuickPick(
    kinds.map((subject) => ({ label: words[subject], subject })),
    {
      title: vscode.l10n.t("Launch Agent on This"),
      placeHolder: vscode.l10n.t("Select what to send with the prompt"),
    },
  );
  return picked?.subject;
}

/** The problems in a range, otherwise those in its first line. */
function problemsAt(document: vscode.TextDocument, range: vscode.Range): readonly vscode.Diagnostic[] {
  const here = problemsIn(document.uri, range);
  return here.length > 0 ? here : problemsIn(document.uri, document.lineAt(range.start).range);
}

/** Reads the subject of a launch, and makes its folder the current one, so that the agent works there. */
export async function readSubject(
  { folders }: Pick<TaskContext, "folders">,
  kind: SubjectKind,
  given: readonly unknown[],
): Promise<Subject> {
  const [uri] = [...given.flatMap(urisIn), repositoryIn(given)];
  useFolderOf(folders, uri);
  return READ[kind](given, folders);
}

/** Makes the folder of an address the current one; by default, that of the active editor. */
function useFolderOf(folders: Folders, uri = vscode.window.activeTextEditor?.document.uri): void {
  folders.use(uri && folders.at(uri));
}

/** Launches from a template: the named one, otherwise one that the user picks. */
export async function launchTemplate(context: PromptContext, name: unknown): Promise<Task | undefined> {
  const { folders, memory } = context;
  useFolderOf(folders);
  await connectedFolder(folders);
  const variables = editorVariables();
  const picked =
    typeof name === "string" ? namedPrompt(name, variables) : await aside(pickPrompt(memory, variables));
  if (!picked) return undefined;
  const { text, agent } = picked;
  return launchTextAsking(context, text, { agents: agent === undefined ? [] : [agent] });
}

/** The given place, otherwise the selection. */
async function selected(place: unknown): Promise<Selected> {
  if (place instanceof vscode.Location)
    return { document: await vscode.workspace.openTextDocument(place.uri), range: place.range };
  const editor = vscode.window.activeTextEditor;
  if (editor) return { document: editor.document, range: editor.selection };
  throw invalidArgument(sentence("Open a file in an editor, then try again."));
}

/** The files passed by a menu of the explorer or of source control. */
function urisIn(value: unknown): readonly vscode.Uri[] {
  if (value instanceof vscode.Uri) return [value];
  if (Array.isArray(value)) return value.flatMap(urisIn);
  if (typeof value !== "object" || value === null) return [];
  if (value instanceof vscode.Location) return [value.uri];
  if ("resourceUri" in value) return urisIn(value.resourceUri);
  return "resourceStates" in value ? urisIn(value.resourceStates) : [];
}

/** The root of the repository whose title menu was used. */
function repositoryIn([value]: readonly unknown[]): vscode.Uri | undefined {
  return typeof value === "object" &&
    value !== null &&
    "rootUri" in value &&
    value.rootUri instanceof vscode.Uri
    ? value.rootUri
    : undefined;
}

/** Undefined if no problems were given. */
function problemsGiven(value: unknown): readonly vscode.Diagnostic[] | undefined {
  if (value instanceof vscode.Diagnostic) return [value];
  if (!Array.isArray(value)) return undefined;
  return value.filter((each): each is vscode.Diagnostic => each instanceof vscode.Diagnostic);
}

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
  useFolderOf(context.folders, document.uri);
  await launchTextAsking(context, text, { isInEditor: true });
}

export async function promptOptions(context: PromptContext, uri: unknown): Promise<void> {
  const document = findDocument(uri);
  const target = requireTarget(context, document);
  if (target.kind === "resume") return;
  const folder = await folderFor(context, target);
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
  const { promptEditors, reveal } = context;
  await promptEditors.submit(document, async (text) => {
    requireText(text);
    const folder = await folderFor(context, target);
    if (target.kind === "resume") {
      const { id } = await remedied(context).resume(target.taskID, text);
      reveal(id);
      return true;
    }
    try {
      const prompts = promptsOf(target.plan, text);
      const { plan, isLaunched } = await launchFromEditor({ ...context, folder }, target.plan, prompts);
      promptEditors.setTarget(document.uri, { ...target, plan });
      return isLaunched;
    } catch (error) {
      if (error instanceof PartlyLaunched) await keepRest(context, document, text, error);
      throw error;
    }
  });
}

/** The folder that a prompt was written for, which is connected. */
async function folderFor({ folders }: PromptContext, target: PromptTarget): Promise<Folder> {
  const [address, otherwise] =
    target.kind === "resume" ? [target.folder, folders.of(target.taskID)] : [target.plan.folder];
  const folder =
    address === undefined ? otherwise : folders.all.find(({ uri }) => uri.toString() === address);
  if (address !== undefined && !folder) throw folderGone();
  return connectedFolder(folders, folder);
}

/** Leaves only the unlaunched prompts in the editor, unless its text has changed in the meantime. */
async function keepRest(
  { promptEditors }: PromptContext,
  document: vscode.TextDocument,
  text: string,
  { prompts, plan }: PartlyLaunched,
): Promise<void> {
  if (document.getText() !== text) return;
  promptEditors.setTarget(document.uri, { kind: "launch", plan });
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
  const document = uri instanceof vscode.Uri ? openDocument(uri) : vscode.window.activeTextEditor?.document;
  if (document) return document;
  throw invalidArgument(sentence("Write the prompt in an editor."));
}

function requireTarget({ promptEditors }: PromptContext, { uri }: vscode.TextDocument): PromptTarget {
  const target = promptEditors.target(uri);
  if (target) return target;
  throw invalidArgument(
    sentence("This editor wasn't opened for a prompt. Run \"Launch Editor's Text as Prompt\"."),
  );
}

/** The actions above a prompt, as code lenses. */
export function promptLenses(document: vscode.TextDocument, target: PromptTarget): vscode.CodeLens[] {
  const { uri } = document;
  const lens = (title: string, command: string, ...args: readonly unknown[]): vscode.CodeLens =>
    new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command, arguments: [uri, ...args] });
  if (target.kind === "resume") {
    const title = vscode.l10n.t('Resume "{0}" (Ctrl+Enter)', withoutIcons(target.description));
    return [lens(title, "asyncagents.launchPrompt")];
  }
  const { plan } = target;
  const text = document.getText();
  const sections = splitSections(text).length;
  const lenses = [
    lens(launchTitle(plan, promptsOf(plan, text)), "asyncagents.launchPrompt"),
    lens(vscode.l10n.t("Options: {0}", choices(plan)), "asyncagents.promptOptions"),
  ];
  if (sections < 2) return lenses;
  const other = plan.splits
    ? vscode.l10n.t("As One Prompt")
    : vscode.l10n.t("As {0} Prompts, Split at ---", sections);
  return [...lenses, lens(other, "_asyncagents.splitPrompt", !plan.splits)];
}

function launchTitle(plan: LaunchPlan, prompts: readonly string[]): string {
  // Without agents, one is assumed.
  const count = plan.agents.length > 0 ? launchesOf(plan, prompts).length : prompts.length;
  if (plan.fork) return vscode.l10n.t("Review the Fork (Ctrl+Enter)");
  return count < 2
    ? vscode.l10n.t("Launch Task (Ctrl+Enter)")
    : vscode.l10n.t("Launch {0} Tasks (Ctrl+Enter)", count);
}

function choices({ agents, model, splits, subject, leavesOutSubject }: LaunchPlan): string {
  return [
    agents.length > 0 ? agents.join(", ") : vscode.l10n.t("select agents"),
    modelText(model),
    subject && !leavesOutSubject ? vscode.l10n.t("with {0}", withoutIcons(subject.title)) : "",
    splits ? vscode.l10n.t("a task for each section between lines of ---") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
