import * as vscode from "vscode";
import type { ListedWorktree } from "../../engine/bring-back.ts";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { isActive, shortID } from "../../engine/task.ts";
import type { TaskContext, PromptContext } from "../commands/command.ts";
import { inform, isAgreed, offer } from "../dialogs.ts";
import { showIfLong } from "../messages.ts";
import { connectedFolder, folderTitle, type Folder } from "../folders/folders.ts";
import { withoutIcons, title as oneTitle } from "../plain-text.ts";
import { format } from "../tree/words.ts";
import { offerUndo } from "./bring-back.ts";
import { isThere, nameOf, remake } from "./isolated-task.ts";
import { pickIsolated, pickPresent } from "../commands/pick.ts";
import { askChoice, aside, type Choice } from "../quick-input.ts";

/** The number of files that a confirmation names. */
const NAMED_FILES = 12;

export async function createBranch(context: TaskContext, argument: unknown): Promise<void> {
  const title = vscode.l10n.t("Create Branch from Worktree");
  const picked = await pickPresent(context, argument, title);
  if (!picked) return;
  const { task, folder } = picked;
  const branch = await vscode.window.showInputBox({
    title,
    prompt: vscode.l10n.t("Enter a name for the branch. Your own branch stays checked out."),
    value: task.worktree.name,
    validateInput: (text) =>
      isBranchName(text) ? undefined : vscode.l10n.t("This isn't a valid branch name."),
  });
  if (branch === undefined) return;
  await showIfLong(vscode.l10n.t("Creating the branch…"), folder.calls.createBranch(task.id, branch));
  await showBranch(branch, vscode.l10n.t('Created the branch {0} from "{1}".', branch, nameOf(task)), folder);
}

/** Says that a branch was created. If GitHub Pull Requests is installed, offers to create a pull request for it. */
export async function showBranch(
  branch: string,
  message: string,
  { uri }: Pick<Folder, "uri">,
): Promise<void> {
  const command = "pr.create";
  if (!(await vscode.commands.getCommands(true)).includes(command)) return inform(message);
  if (await offer(message, vscode.l10n.t("Create Pull Request…")))
    await vscode.commands.executeCommand(command, { repoPath: uri.fsPath, compareBranch: branch });
}

/** What Git refuses in names is more; it says the rest when the branch is created. */
function isBranchName(text: string): boolean {
  return (
    text !== "" && !/[\s~^:?*[\\]|\.\.|@\{|\/\/|\p{Cc}/u.test(text) && !/^[-/.]|[/.]$|\.lock$/.test(text)
  );
}

/** Discards the work of an isolated task, after listing what that is, and offers to undo that. */
export async function discardWorktree(context: TaskContext, argument: unknown): Promise<void> {
  const discarded = await discardWork(context, argument);
  if (discarded) offerUndo(discarded.message, discarded.undo, context.logger);
}

/** Like {@link discardWorktree}, but resolves to what was done. Undefined if the user decided against it. */
export async function discardWork(
  context: TaskContext,
  argument: unknown,
): Promise<{ readonly message: string; readonly undo: () => Promise<void> } | undefined> {
  const picked = await pickPresent(context, argument, vscode.l10n.t("Discard Worktree"));
  if (!picked) return;
  const { task, folder } = picked;
  if (isActive(task))
    throw new Refusal(
      "still-running",
      sentence("Task {0} or a subtask is still working in the worktree. Cancel it first.", shortID(task.id)),
    );
  const { files } = await showIfLong(
    vscode.l10n.t("Reading changes…"),
    folder.calls.worktreeChanges(task.id),
  );
  const question = vscode.l10n.t('Discard the work of "{0}"?', nameOf(task));
  const detail = [
    ...fileLines(files),
    "",
    vscode.l10n.t("For 30 days, it is kept under a hidden Git ref, except for ignored files."),
  ].join("\n");
  if (!(await isAgreed(question, vscode.l10n.t("Discard"), detail))) return;
  const ref = await folder.calls.discardWorktree(task.id);
  return {
    message: vscode.l10n.t('Discarded the work of "{0}".', nameOf(task)),
    undo: () => folder.calls.undoDiscard(task.id, ref),
  };
}

function fileLines(files: readonly { path: string; added: number; removed: number }[]): readonly string[] {
  if (files.length === 0) return [vscode.l10n.t("No files were changed.")];
  const named = files
    .slice(0, NAMED_FILES)
    .map(({ path, added, removed }) => `${path} +${added} −${removed}`);
  return files.length > named.length
    ? [...named, vscode.l10n.t("and {0} more", files.length - named.length)]
    : named;
}

type WorktreeItem = vscode.QuickPickItem & { readonly worktree: ListedWorktree };

/** Lists the worktrees of the current folder's tasks, and removes chosen ones. */
export async function cleanUpWorktrees({ folders }: TaskContext): Promise<void> {
  const folder = await connectedFolder(folders);
  const { calls } = folder;
  const listed = await showIfLong(vscode.l10n.t("Reading worktrees…"), calls.listWorktrees());
  if (listed.length === 0) return inform(vscode.l10n.t("There are no worktrees of tasks."));
  const picked = await vscode.window.showQuickPick(listed.map(worktreeItem), {
    title: folderTitle(folders, folder, vscode.l10n.t("Clean Up Worktrees")),
    placeHolder: vscode.l10n.t("Select the worktrees to remove"),
    canPickMany: true,
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (!picked || picked.length === 0) return;
  const unsaved = picked.filter(({ worktree }) => hasWork(worktree));
  if (unsaved.length > 0 && !(await confirmRemoval(unsaved))) return;
  await showIfLong(
    vscode.l10n.t("Removing worktrees…"),
    Promise.all(picked.map(({ worktree }) => calls.cleanUpWorktree(worktree.name))),
  );
}

function hasWork({ files, commits }: ListedWorktree): boolean {
  return files === undefined || files.length > 0 || commits > 0;
}

function confirmRemoval(items: readonly WorktreeItem[]): Promise<boolean> {
  const detail = items.map(({ label, detail }) => `${label}: ${detail}`).join("\n");
  const question = vscode.l10n.t("Remove worktrees that contain changes?");
  const hint = vscode.l10n.t("The state of each is kept under a Git ref, except for ignored files.");
  return isAgreed(question, vscode.l10n.t("Remove"), `${detail}\n\n${hint}`);
}

function worktreeItem(worktree: ListedWorktree): WorktreeItem {
  const { name, made, size, files, commits, task } = worktree;
  const state = task?.isRunning
    ? vscode.l10n.t("running")
    : task
      ? vscode.l10n.t("ended")
      : vscode.l10n.t("its task no longer exists");
  const changes =
    files === undefined
      ? vscode.l10n.t("can't be read")
      : files.length === 0
        ? vscode.l10n.t("no changes")
        : files.length === 1
          ? vscode.l10n.t("1 file changed")
          : vscode.l10n.t("{0} files changed", files.length);
  return {
    worktree,
    label: withoutIcons(task?.description ?? name),
    description: [state, format.moment(made), megabytes(size)].join(" · "),
    detail:
      commits === 0
        ? changes
        : commits === 1
          ? vscode.l10n.t("{0}, 1 commit that isn't on a branch", changes)
          : vscode.l10n.t("{0}, {1} commits that aren't on a branch", changes, commits),
  };
}

function megabytes(bytes: number): string {
  return vscode.l10n.t("{0} MB", Math.ceil(bytes / 1_000_000));
}

/** Opens the worktree of an isolated task where the user wants it; one that is gone can be made again. */
export async function openWorktree(context: PromptContext, argument: unknown): Promise<void> {
  const title = vscode.l10n.t("Open Worktree");
  const picked = await pickIsolated(context, argument, title);
  if (!picked) return;
  const { task, folder } = picked;
  const { directory } = task.worktree;
  const [present, output] = await Promise.all([isThere(task), folder.calls.setupOutput(task.id)]);
  const places: readonly Choice<() => unknown>[] = [
    {
      label: vscode.l10n.t("$(empty-window) Open in New Window"),
      value: () =>
        vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(directory), {
          forceNewWindow: true,
        }),
    },
    {
      label: vscode.l10n.t("$(terminal) Open Terminal"),
      value: () => vscode.window.createTerminal({ name: oneTitle(task.description), cwd: directory }).show(),
    },
  ];
  const again = {
    label: vscode.l10n.t("$(debug-restart) Recreate Worktree"),
    detail: vscode.l10n.t("It is recreated from its last saved state."),
    value: async () => {
      await remake(folder, task);
      inform(vscode.l10n.t("Recreated the worktree: {0}", directory));
    },
  };
  const run = await aside(
    askChoice<() => unknown>({
      title,
      placeholder: vscode.l10n.t("Select what to open"),
      choices: [
        ...(present ? places : [again]),
        {
          label: vscode.l10n.t("$(copy) Copy Path"),
          description: withoutIcons(directory),
          value: () => vscode.env.clipboard.writeText(directory),
        },
        ...(output === undefined
          ? []
          : [
              {
                label: vscode.l10n.t("$(output) Show Setup Output"),
                value: () => context.openText(vscode.l10n.t("Setup of {0}.log", task.description), output),
              },
            ]),
      ],
    }),
  );
  await run?.();
}
