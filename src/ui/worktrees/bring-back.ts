import { lstat, realpath } from "node:fs/promises";
import { basename, join, relative, resolve, sep } from "node:path";
import * as vscode from "vscode";
import type { BringBackPlan, FileChoice, PlannedFile } from "../../engine/bring-back.ts";
import type { Logger } from "../../engine/ports.ts";
import type { TaskContext } from "../commands/command.ts";
import { inform, offer } from "../dialogs.ts";
import { showError, showIfLong } from "../messages.ts";
import type { Folder } from "../folders/folders.ts";
import { realPath, unsavedTexts } from "../output/workspace-file.ts";
import { withoutIcons } from "../plain-text.ts";
import { askChoice, pickAny, type Choice, type ListItem } from "../quick-input.ts";
import { BACK } from "../wizard.ts";
import { nameOf, type IsolatedTask } from "./isolated-task.ts";
import { pickPresent } from "../commands/pick.ts";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";

/** What the user wants to bring back, or that the agent should merge first. */
type Decision = readonly FileChoice[] | "agent";

/** A plan, and the unsaved texts that it takes into account. */
interface Planned {
  readonly task: IsolatedTask;
  readonly folder: Folder;
  readonly plan: BringBackPlan;
  readonly unsaved: Readonly<Record<string, string>>;
}

/** Brings the work of an isolated task back into the folder: shows what would change, asks, then writes. */
export async function bringBack(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickPresent(context, argument, vscode.l10n.t("Bring Back"));
  if (!picked) return;
  const { task, folder } = picked;
  const planned = await planBringBack(task, folder);
  if (planned.plan.files.length === 0) return offerCleanUp(nameOf(task));
  const decision = await askFiles(planned);
  if (decision === "agent") await folder.calls.letAgentMerge(task.id, planned.plan);
  else if (decision?.every(({ take }) => take === "mine")) inform(vscode.l10n.t("Nothing was brought back."));
  else if (decision) offerUndo(broughtBack(task, decision), await write(planned, decision), context.logger);
}

async function offerCleanUp(name: string): Promise<void> {
  const message = vscode.l10n.t('The folder already has all changes by "{0}".', name);
  if (await offer(message, vscode.l10n.t("Clean Up Worktrees…")))
    await vscode.commands.executeCommand("asyncagents.cleanUpWorktrees");
}

export async function planBringBack(task: IsolatedTask, folder: Folder): Promise<Planned> {
  const root = await realpath(folder.uri.fsPath);
  // The paths outside of the folder begin with `..`.
  const unsaved = Object.fromEntries(
    (await unsavedTexts()).map(([file, text]) => [pathBelow(root, file), text]),
  );
  const plan = await showIfLong(
    vscode.l10n.t("Comparing with the folder…"),
    folder.calls.planBringBack(task.id, unsaved),
  );
  return { task, folder, plan, unsaved };
}

/** A file of the worktree and the same one in the folder. */
interface Sides {
  readonly agents: string;
  readonly mine: string;
}

type FileItem = ListItem<Sides> & { readonly file: PlannedFile };

/** Undefined if the user leaves, or takes single changes instead. */
async function askFiles(planned: Planned): Promise<Decision | undefined> {
  const { task, plan } = planned;
  const conflicts = plan.files.filter(({ conflict }) => conflict !== undefined);
  const letAgent = {
    iconPath: new vscode.ThemeIcon("sparkle"),
    tooltip: vscode.l10n.t("Let the Agent Merge"),
    gives: "agent" as const,
  };
  const canAsk = conflicts.length > 0 && task.status === "completed";
  const picked = await pickAny<FileItem, "agent" | Sides>({
    title: vscode.l10n.t("Bring Back: {0}", summary(plan.files.length - conflicts.length, conflicts.length)),
    placeholder: vscode.l10n.t("Select the files to change in your folder"),
    items: fileItems(planned),
    first: (items) => items.filter(({ file }) => file.conflict === undefined),
    buttons: canAsk ? [letAgent] : [],
  });
  if (picked === undefined || picked === BACK || picked === "agent")
    return picked === "agent" ? picked : undefined;
  if ("mine" in picked) {
    await compare(picked);
    return undefined;
  }
  const choices: FileChoice[] = [];
  for (const { file } of picked) {
    const { path } = file;
    const take = file.conflict === undefined ? "merged" : await askTake(file, canAsk);
    if (take === undefined || take === "agent") return take;
    choices.push({ path, take });
  }
  return choices;
}

async function askTake(
  { path, hasMarkers }: PlannedFile,
  canAsk: boolean,
): Promise<FileChoice["take"] | "agent" | undefined> {
  const choices: Choice<FileChoice["take"] | "agent">[] = [
    { label: vscode.l10n.t("$(account) Keep My File"), value: "mine" },
    { label: vscode.l10n.t("$(hubot) Take the Agent's File"), value: "agents" },
  ];
  if (hasMarkers)
    choices.push({
      label: vscode.l10n.t("$(git-merge) Write Conflict Markers"),
      description: vscode.l10n.t("resolve the conflict in the editor"),
      value: "markers",
    });
  if (canAsk)
    choices.push({
      label: vscode.l10n.t("$(sparkle) Let the Agent Merge"),
      description: vscode.l10n.t("nothing is written to your folder yet"),
      value: "agent",
    });
  const title = vscode.l10n.t("Conflict: {0}", path);
  const placeholder = vscode.l10n.t("Select how to resolve the conflict");
  const picked = await askChoice({ title, placeholder, choices });
  return picked === BACK ? undefined : picked;
}

async function fileItems({ task, folder, plan }: Planned): Promise<readonly FileItem[]> {
  const toTop = relative(await realpath(folder.uri.fsPath), plan.root);
  return Promise.all(
    plan.files.map(async (file) => {
      const agents = join(task.worktree.directory, toTop, file.path);
      const mine = join(plan.root, file.path);
      const hasBoth = file.added + file.removed > 0 && (await isFile(agents)) && (await isFile(mine));
      return fileItem(file, hasBoth ? { agents, mine } : undefined);
    }),
  );
}

function isFile(path: string): Promise<boolean> {
  return lstat(path).then(
    (facts) => facts.isFile(),
    () => false,
  );
}

/** Opens the diff editor, whose arrows copy single changes from the left side, the task's, to the folder's. */
async function compare({ agents, mine }: Sides): Promise<void> {
  const title = vscode.l10n.t("{0} (Task ↔ Folder)", basename(mine));
  await vscode.commands.executeCommand("vscode.diff", vscode.Uri.file(agents), vscode.Uri.file(mine), title);
}

function fileItem(file: PlannedFile, sides: Sides | undefined): FileItem {
  const { path, from, added, removed, isBinary, conflict } = file;
  const lines = isBinary ? vscode.l10n.t("binary file") : `+${added} −${removed}`;
  const facts = [kindWord(file), lines, from === undefined ? "" : vscode.l10n.t("from {0}", from)];
  return {
    file,
    label: withoutIcons(path),
    description: withoutIcons(facts.filter(Boolean).join(" · ")),
    ...(conflict && { detail: conflictWords(conflict) }),
    iconPath: new vscode.ThemeIcon(conflict ? "warning" : "file"),
    ...(sides && {
      buttons: [
        {
          iconPath: new vscode.ThemeIcon("diff-single"),
          tooltip: vscode.l10n.t("Take Single Changes…"),
          gives: sides,
        },
      ],
    }),
  };
}

function kindWord({ kind }: PlannedFile): string {
  switch (kind) {
    case "added":
      return vscode.l10n.t("created");
    case "modified":
      return vscode.l10n.t("edited");
    case "deleted":
      return vscode.l10n.t("deleted");
    case "renamed":
      return vscode.l10n.t("renamed");
    case "mode":
      return vscode.l10n.t("file mode changed");
  }
}

function conflictWords(conflict: NonNullable<PlannedFile["conflict"]>): string {
  switch (conflict) {
    case "content":
      return vscode.l10n.t("Conflict: you and the agent changed the same part");
    case "both-added":
      return vscode.l10n.t("Conflict: you and the agent created this file");
    case "deleted-by-you":
      return vscode.l10n.t("Conflict: you deleted what the agent changed");
    case "deleted-by-agent":
      return vscode.l10n.t("Conflict: the agent deleted what you changed");
    case "kind":
      return vscode.l10n.t("Conflict: you and the agent made different kinds of files of this");
  }
}

function summary(clean: number, conflicting: number): string {
  const cleanWords =
    clean === 1
      ? vscode.l10n.t("1 file without conflicts")
      : vscode.l10n.t("{0} files without conflicts", clean);
  return conflicting === 0 ? cleanWords : vscode.l10n.t("{0}, {1} in conflict", cleanWords, conflicting);
}

/** Restores the folder and the editors. */
export type UndoBringBack = () => Promise<void>;

/** Writes the chosen files. Unsaved texts are changed in their editors, and stay unsaved. */
export async function write(
  { task, folder, plan, unsaved }: Planned,
  choices: readonly FileChoice[],
): Promise<UndoBringBack> {
  const { root, files } = plan;
  const written = choices.filter(({ take }) => take !== "mine").map(({ path }) => path);
  const touched = files
    .filter(({ path }) => written.includes(path))
    .flatMap(({ path, from }) => (from === undefined ? [path] : [from, path]));
  const inEditors = await unsavedOf(root, touched, folder.uri, unsaved);
  const { before, after, texts } = await folder.calls.bringBack(task.id, plan, choices, [
    ...inEditors.keys(),
  ]);
  const undo = (): Promise<void> => folder.calls.undoBringBack(task.id, { before, after });
  const changes = Object.entries(texts).map(([path, text]): TextChange => {
    return { path, before: inEditors.get(path) ?? "", after: text };
  });
  try {
    await changeTexts(root, changes);
  } catch (error) {
    await undo();
    throw error;
  }
  const changed = await Promise.all(
    changes.map(async ({ path, before }) => {
      // An editor has its own line endings.
      return { path, before, after: (await documentOf(root, path))?.getText() ?? "" };
    }),
  );
  return async () => {
    await changeTexts(root, changed, "undo");
    try {
      await undo();
    } catch (error) {
      // Only the worktree is missing then.
      if ((error as Partial<Refusal>).code !== "partly-done") await changeTexts(root, changed);
      throw error;
    }
  };
}

function broughtBack(task: IsolatedTask, choices: readonly FileChoice[]): string {
  const name = nameOf(task);
  const count = choices.filter(({ take }) => take !== "mine").length;
  return count === 1
    ? vscode.l10n.t('Brought back 1 file from "{0}".', name)
    : vscode.l10n.t('Brought back {0} files from "{1}".', count, name);
}

/** Says what was done, and undoes it if the user wants that. Doesn't wait for the user. */
export function offerUndo(message: string, undo: () => Promise<void>, logger: Logger): void {
  const offered = async (): Promise<void> => {
    if (await offer(message, vscode.l10n.t("Undo"))) await showIfLong(vscode.l10n.t("Restoring…"), undo());
  };
  offered().catch((error: unknown) => showError(error, logger));
}

/** A text to put into an editor, and the one that it replaces. */
interface TextChange {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/**
 * Which of these files have unsaved changes. Throws a {@link Refusal} if a text isn't what it was when it was read.
 * @param paths below the repository's top folder
 */
async function unsavedOf(
  root: string,
  paths: readonly string[],
  folder: vscode.Uri,
  planned: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, string>> {
  const realFolder = await realpath(folder.fsPath);
  const unsaved = new Map<string, string>();
  for (const path of paths) {
    const document = await documentOf(root, path);
    if (!document?.isDirty) continue;
    const before = planned[pathBelow(realFolder, resolve(root, path))];
    if (before !== document.getText()) throw changedSince(path);
    unsaved.set(path, before);
  }
  return unsaved;
}

/** Changes the texts of editors as one undoable edit; nothing is saved. Throws a {@link Refusal} if one has changed. */
async function changeTexts(root: string, changes: readonly TextChange[], undo?: "undo"): Promise<void> {
  if (changes.length === 0) return;
  const edit = new vscode.WorkspaceEdit();
  for (const { path, ...texts } of changes) {
    const document = await documentOf(root, path);
    const [before, after] = undo ? [texts.after, texts.before] : [texts.before, texts.after];
    if (document?.getText() !== before) throw changedSince(path, undo);
    const { start, end, text } = difference(before, after);
    const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
    // The editor reduces an edit without metadata to single code units, which breaks characters that have two of them.
    edit.replace(document.uri, range, text, { label: path, needsConfirmation: false });
  }
  if (!(await vscode.workspace.applyEdit(edit)))
    throw new Refusal("unavailable", sentence("The editor didn't apply the changes."));
}

/** What to replace, in whole characters, so that cursors and folded lines elsewhere stay. */
function difference(before: string, after: string): { start: number; end: number; text: string } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let tail = 0;
  while (tail < shorter - start && before[before.length - 1 - tail] === after[after.length - 1 - tail])
    tail++;
  const isInPair = (at: number): boolean => (before.codePointAt(at - 1) ?? 0) > 0xffff;
  if (isInPair(start)) start--;
  if (isInPair(before.length - tail)) tail--;
  return { start, end: before.length - tail, text: after.slice(start, after.length - tail) };
}

async function documentOf(root: string, path: string): Promise<vscode.TextDocument | undefined> {
  const file = resolve(root, path);
  for (const document of vscode.workspace.textDocuments)
    if (document.uri.scheme === "file" && (await realPath(document)) === file) return document;
  return undefined;
}

function pathBelow(folder: string, file: string): string {
  return relative(folder, file).split(sep).join("/");
}

function changedSince(path: string, undo?: "undo"): Refusal {
  return new Refusal(
    "wrong-status",
    undo
      ? sentence("{0} has changed in the meantime, so nothing was restored.", path)
      : sentence("{0} has changed in the meantime, so nothing was written. Bring the work back again.", path),
  );
}
