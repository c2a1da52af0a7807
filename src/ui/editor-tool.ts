import * as vscode from "vscode";
import { Refusal } from "../engine/errors.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { Logger } from "../engine/ports.ts";
import { cancelTargets } from "../tools/cancel.ts";
import { clearTargets } from "../tools/clear.ts";
import { oneLine } from "../tools/plain-text.ts";
import { ToolInput } from "../tools/tool-input.ts";
import type { KnownTasks, ToolName } from "../tools/tool.ts";
import { connectedFolder, requireFolder, type Folder, type Folders } from "./folders/folders.ts";
import { modelMessage } from "./messages.ts";
import { visible } from "./plain-text.ts";
import { withRemedy } from "./worktrees/remedies.ts";

/** Characters of a prompt shown in its confirmation. */
const PROMPT_EXCERPT = 1_000;
const LINE = 120;
/** The number of tasks that a confirmation names. */
const MOST_NAMED = 10;

/** A tool that changes something. */
type ChangingTool = "asyncagents_task" | "asyncagents_cancel" | "asyncagents_clear";

/** What the tools need of this window. */
export interface EditorToolContext {
  readonly known: KnownTasks;
  readonly folders: Folders;
  readonly logger: Logger;
  /** Called when an agent has launched a task. */
  readonly onDidLaunch: () => void;
}

/** What the user was asked to confirm before a call. */
interface Question {
  readonly folder: Folder;
  /** Undefined if there was no session yet, and thus no known tasks. */
  readonly sessionID: string | undefined;
  /** The tasks that the call would cancel or clear. */
  readonly tasks: readonly Task[];
}

/**
 * A tool for VS Code's own agents. Such an agent has no OpenCode session: the tool works on the active session, and
 * notifications about its tasks appear as if the user had launched them.
 */
export class EditorTool implements vscode.LanguageModelTool<object> {
  /**
   * Confirmations of upcoming calls, by the JSON of their input: the editor gives nothing else that links a call to its
   * confirmation. Declined ones remain here, because no call follows them.
   */
  private readonly questions = new Map<string, readonly Question[]>();

  constructor(
    private readonly name: ToolName,
    private readonly context: EditorToolContext,
  ) {}

  /** Only reads what is known: starts no server and creates no session. */
  async prepareInvocation({
    input,
  }: vscode.LanguageModelToolInvocationPrepareOptions<object>): Promise<vscode.PreparedToolInvocation> {
    const { name, context } = this;
    const { folders, known } = context;
    const invocationMessage = progressMessage(name);
    await folders.opened;
    const folder = folders.current;
    // The call itself is refused without a folder.
    if (!needsConfirmation(name) || !folder) return { invocationMessage };
    const sessionID = folder.session.id;
    const tasks = sessionID === undefined ? [] : affectedTasks(name, input, known, sessionID);
    const question = { folder, sessionID, tasks };
    const key = JSON.stringify(input);
    this.questions.set(key, [...(this.questions.get(key) ?? []), question]);
    return {
      invocationMessage,
      confirmationMessages: confirmation(name, input, question, context),
    };
  }

  /** Rejects with an error whose message is for the model. */
  async invoke(
    { input }: vscode.LanguageModelToolInvocationOptions<object>,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> {
    const abort = new AbortController();
    const subscription = token.onCancellationRequested(() => abort.abort());
    try {
      const text = await this.run(input, abort.signal);
      return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(text)]);
    } catch (error) {
      if (token.isCancellationRequested) throw new vscode.CancellationError();
      this.context.logger.error(`The tool ${this.name} failed.`, error);
      throw new Error(modelMessage(error), { cause: error });
    } finally {
      subscription.dispose();
    }
  }

  private async run(input: object, signal: AbortSignal): Promise<string> {
    const { folders, known } = this.context;
    await folders.opened;
    const current = requireFolder(folders);
    const questions = needsConfirmation(this.name) ? this.takeQuestions(input) : [];
    const folder = await connectedFolder(folders, questions[0]?.folder ?? current);
    const { session } = folder;
    const sessionID =
      questions[0]?.sessionID ??
      // A call that only looks for tasks must not create a session.
      (this.name === "asyncagents_task" ? await session.ensure() : (session.id ?? ""));
    // Tasks may have been launched or resumed since the confirmation.
    for (const task of affectedTasks(this.name, input, known, sessionID))
      if (!questions.every((question) => covers(question, task))) throw this.changedSince(input);
    const text = await withRemedy(folder, sessionID, () =>
      folder.calls.callTool(this.name, input, sessionID, signal),
    );
    if (this.name === "asyncagents_task") this.context.onDidLaunch();
    return text;
  }

  /**
   * Returns the confirmations that may belong to a call with this input; the call does only what all of them allow.
   * Throws a {@link Refusal} if they are about different folders or sessions, or if there are none.
   */
  private takeQuestions(input: object): readonly Question[] {
    const key = JSON.stringify(input);
    const questions = this.questions.get(key) ?? [];
    const [first, ...others] = questions;
    const isSamePlace = ({ folder, sessionID }: Question): boolean =>
      folder === first?.folder && sessionID === first.sessionID;
    if (!first || !others.every(isSamePlace)) throw this.changedSince(input);
    if (others.length > 0) this.questions.set(key, others);
    else this.questions.delete(key);
    return questions;
  }

  /** Drops the confirmations, so that the next call isn't checked against them. */
  private changedSince(input: object): Refusal {
    this.questions.delete(JSON.stringify(input));
    return new Refusal(
      "unavailable",
      "The user did not confirm exactly what this call would do now, so nothing was done. Call the tool again to ask for confirmation.",
    );
  }
}

function needsConfirmation(name: ToolName): name is ChangingTool {
  return name === "asyncagents_task" || name === "asyncagents_cancel" || name === "asyncagents_clear";
}

/** The tasks that a call would cancel or clear. */
function affectedTasks(name: ToolName, sent: unknown, known: KnownTasks, sessionID: string): readonly Task[] {
  const context = { known, caller: { sessionID, by: "person" as const } };
  try {
    if (name === "asyncagents_cancel") return cancelTargets(new ToolInput(sent), context).filter(isActive);
    if (name === "asyncagents_clear") return clearTargets(new ToolInput(sent), context);
  } catch {
    // The call itself reports what is wrong with the input.
  }
  return [];
}

/** Whether the confirmation listed this task, and listed it as running if it is. */
function covers({ sessionID, tasks }: Question, task: Task): boolean {
  const listed = tasks.find(({ id }) => id === task.id);
  return sessionID === undefined || (listed !== undefined && (isActive(listed) || !isActive(task)));
}

function progressMessage(name: ToolName): string {
  switch (name) {
    case "asyncagents_task":
      return vscode.l10n.t("Launching background task…");
    case "asyncagents_output":
      return vscode.l10n.t("Reading background task…");
    case "asyncagents_cancel":
      return vscode.l10n.t("Cancelling background tasks…");
    case "asyncagents_clear":
      return vscode.l10n.t("Clearing background tasks…");
    case "asyncagents_list":
      return vscode.l10n.t("Listing background tasks…");
  }
}

/** The confirmation for a call that starts work, or that stops or removes tasks. */
function confirmation(
  name: ChangingTool,
  sent: unknown,
  question: Question,
  { folders, known }: EditorToolContext,
): vscode.LanguageModelToolConfirmationMessages {
  const message = new vscode.MarkdownString();
  if (folders.all.length > 1) addLine(message, vscode.l10n.t("Folder: {0}", question.folder.name));
  try {
    const input = new ToolInput(sent);
    if (name === "asyncagents_task")
      return { title: describeLaunch(input, question, known, message), message };
    describeTasks(name, input, question, message);
    return { title: askAbout(name, question.tasks.length), message };
  } catch {
    // The call itself reports what is wrong with the input.
    return { title: progressMessage(name), message };
  }
}

/** Adds the details to the message and returns the title. */
function describeLaunch(
  input: ToolInput,
  { sessionID }: Question,
  known: KnownTasks,
  message: vscode.MarkdownString,
): string {
  const [resumed, steered] = [input.id("resume"), input.id("send_to")];
  const reference = resumed ?? steered;
  if (reference !== undefined)
    addLine(message, vscode.l10n.t("Task: {0}", nameTask(reference, known, sessionID)));
  const [description, agent, model] = [input.text("description"), input.text("agent"), input.text("model")];
  if (description !== undefined) addLine(message, description);
  if (agent !== undefined) addLine(message, vscode.l10n.t("Agent: {0}", agent));
  if (model !== undefined) addLine(message, vscode.l10n.t("Model: {0}", model));
  if (input.flag("fork"))
    addLine(message, vscode.l10n.t("The task inherits the conversation of the active session."));
  const prompt = input.text("prompt") ?? "";
  message.appendCodeblock(visible(prompt.slice(0, PROMPT_EXCERPT)), "text");
  if (prompt.length > PROMPT_EXCERPT)
    addLine(message, vscode.l10n.t("… the prompt has {0} characters in total.", prompt.length));
  if (steered !== undefined) return vscode.l10n.t("Send a message to a background task?");
  return resumed === undefined
    ? vscode.l10n.t("Launch a background task?")
    : vscode.l10n.t("Resume a background task?");
}

/** Lists the affected tasks; if they are unknown, lists the IDs that the call names. */
function describeTasks(
  name: ToolName,
  input: ToolInput,
  { tasks }: Question,
  message: vscode.MarkdownString,
): void {
  for (const { description } of tasks.slice(0, MOST_NAMED)) addLine(message, description);
  if (tasks.length > MOST_NAMED)
    addLine(message, vscode.l10n.t("… and {0} more.", tasks.length - MOST_NAMED));
  const running = name === "asyncagents_clear" ? tasks.filter(isActive).length : 0;
  if (running > 0) addLine(message, vscode.l10n.t("Still running, and also cancelled: {0}.", running));
  if (tasks.length > 0) return;
  const [taskID, batchID] = [input.id("task_id"), input.id("batch_id")];
  if (taskID !== undefined) addLine(message, vscode.l10n.t("Task: {0}", taskID));
  if (batchID !== undefined) addLine(message, vscode.l10n.t("Batch: {0}", batchID));
  if (name === "asyncagents_clear" && taskID === undefined && batchID === undefined)
    addLine(message, vscode.l10n.t("All background tasks of the active session, running ones included."));
}

/** @param count the number of tasks; 0 if they are unknown */
function askAbout(name: Exclude<ChangingTool, "asyncagents_task">, count: number): string {
  switch (name) {
    case "asyncagents_cancel":
      if (count === 0) return vscode.l10n.t("Cancel background tasks?");
      return count === 1
        ? vscode.l10n.t("Cancel this background task?")
        : vscode.l10n.t("Cancel {0} background tasks?", count);
    case "asyncagents_clear":
      if (count === 0) return vscode.l10n.t("Clear background tasks from the list?");
      return count === 1
        ? vscode.l10n.t("Clear this background task from the list?")
        : vscode.l10n.t("Clear {0} background tasks from the list?", count);
  }
}

function nameTask(reference: string, known: KnownTasks, sessionID: string | undefined): string {
  try {
    return known.find(reference, sessionID ?? "").description;
  } catch {
    return reference;
  }
}

/** Adds a paragraph of literal text, without Markdown. */
function addLine(message: vscode.MarkdownString, text: string): void {
  message.appendText(visible(oneLine(text, LINE))).appendMarkdown("\n\n");
}
