import * as vscode from "vscode";
import { Refusal } from "../engine/errors.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { Logger } from "../engine/ports.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import { oneLine } from "../tools/plain-text.ts";
import { RUNS } from "../tools/runs.ts";
import { ToolInput } from "../tools/tool-input.ts";
import type { KnownTasks, ToolName } from "../tools/tool.ts";
import { connectedFolder } from "./folders/connected-folder.ts";
import type { Folder } from "./folders/folder.ts";
import type { Folders } from "./folders/folders.ts";
import { modelMessage } from "./human-error.ts";
import { visible } from "./plain-text.ts";

/** Characters of a prompt that a person is shown before they agree to it. */
const PROMPT_EXCERPT = 1_000;
const LINE = 120;
/** How many of the tasks to be cleared are named. */
const MOST_NAMED = 10;

/** What the tools work on in this window. */
export interface EditorToolContext {
  readonly known: KnownTasks;
  readonly commands: TaskCommands;
  readonly folders: Folders;
  readonly logger: Logger;
  /** An agent launched a task. */
  readonly onDidLaunch: () => void;
}

/**
 * One tool as an agent of the editor calls it. Such an agent has no session in OpenCode: it works on the active one,
 * and what it launches is announced as if the person had launched it.
 */
export class EditorTool implements vscode.LanguageModelTool<object> {
  /** The folder and the session that the person was asked about last. */
  private confirmed:
    { readonly folder: Folder | undefined; readonly sessionID: string | undefined } | undefined;

  constructor(
    private readonly name: ToolName,
    private readonly context: EditorToolContext,
  ) {}

  async prepareInvocation({
    input,
  }: vscode.LanguageModelToolInvocationPrepareOptions<object>): Promise<vscode.PreparedToolInvocation> {
    // What is to be cleared has to be known before it is confirmed.
    if (this.name === "asyncagents_clear") await connectedFolder(this.context.folders).catch(() => undefined);
    this.confirmed = { folder: this.context.folders.current, sessionID: activeSession(this.context) };
    const confirmationMessages = confirmation(this.name, input, this.context);
    const invocationMessage = progressMessage(this.name);
    return confirmationMessages ? { invocationMessage, confirmationMessages } : { invocationMessage };
  }

  /** Rejects with one sentence for the model. */
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

  private async run(input: unknown, signal: AbortSignal): Promise<string> {
    const { folders, known, commands } = this.context;
    const { session } = await connectedFolder(folders, this.confirmed?.folder);
    // Whoever only looks for tasks must not leave a session behind.
    const sessionID = this.name === "asyncagents_task" ? await session.ensure() : (session.id ?? "");
    if (this.name === "asyncagents_clear" && this.confirmed && this.confirmed.sessionID !== session.id)
      throw new Refusal("unavailable", "Another session is active by now; nothing was cleared. Ask again.");
    const caller = { sessionID, by: "person" as const };
    const { text } = await RUNS[this.name](input, { caller, known, commands, signal, now: Date.now });
    if (this.name === "asyncagents_task") this.context.onDidLaunch();
    return text;
  }
}

function progressMessage(name: ToolName): string {
  switch (name) {
    case "asyncagents_task":
      return vscode.l10n.t("Handing a task to a background agent");
    case "asyncagents_output":
      return vscode.l10n.t("Reading a background task");
    case "asyncagents_cancel":
      return vscode.l10n.t("Cancelling background tasks");
    case "asyncagents_clear":
      return vscode.l10n.t("Clearing background tasks");
    case "asyncagents_list":
      return vscode.l10n.t("Looking at the background tasks");
  }
}

/** What a person has to agree to: work that is begun, and tasks that go. */
function confirmation(
  name: ToolName,
  sent: unknown,
  context: EditorToolContext,
): vscode.LanguageModelToolConfirmationMessages | undefined {
  const message = new vscode.MarkdownString();
  try {
    const input = new ToolInput(sent);
    switch (name) {
      case "asyncagents_task":
        return { title: describeLaunch(input, context, message), message };
      case "asyncagents_clear":
        return { title: describeClear(input, context, message), message };
      default:
        return undefined;
    }
  } catch {
    // The call itself will say what is wrong with it.
    return { title: progressMessage(name), message };
  }
}

/** Returns the question. */
function describeLaunch(
  input: ToolInput,
  context: EditorToolContext,
  message: vscode.MarkdownString,
): string {
  const resumed = input.id("resume");
  if (resumed !== undefined) addLine(message, vscode.l10n.t("Task: {0}", nameTask(resumed, context)));
  const { all, current } = context.folders;
  if (current && all.length > 1) addLine(message, vscode.l10n.t("Folder: {0}", current.name));
  const [description, agent, model] = [input.text("description"), input.text("agent"), input.text("model")];
  if (description !== undefined) addLine(message, description);
  if (agent !== undefined) addLine(message, vscode.l10n.t("Agent: {0}", agent));
  if (model !== undefined) addLine(message, vscode.l10n.t("Model: {0}", model));
  if (input.flag("fork")) addLine(message, vscode.l10n.t("It gets the conversation of the active session."));
  const prompt = input.text("prompt") ?? "";
  message.appendCodeblock(visible(prompt.slice(0, PROMPT_EXCERPT)), "text");
  if (prompt.length > PROMPT_EXCERPT)
    addLine(message, vscode.l10n.t("… the prompt has {0} characters in all.", prompt.length));
  return resumed === undefined
    ? vscode.l10n.t("Launch a background task?")
    : vscode.l10n.t("Resume a background task?");
}

/** Returns the question. */
function describeClear(input: ToolInput, context: EditorToolContext, message: vscode.MarkdownString): string {
  const tasks = tasksToClear(input, context);
  for (const { description } of tasks.slice(0, MOST_NAMED)) addLine(message, description);
  if (tasks.length > MOST_NAMED)
    addLine(message, vscode.l10n.t("… and {0} more.", tasks.length - MOST_NAMED));
  const running = tasks.filter(isActive).length;
  if (running > 0) addLine(message, vscode.l10n.t("Still at work, and cancelled by this: {0}.", running));
  return tasks.length === 1
    ? vscode.l10n.t("Clear this background task from the list?")
    : vscode.l10n.t("Clear {0} background tasks from the list?", tasks.length);
}

function tasksToClear(input: ToolInput, context: EditorToolContext): readonly Task[] {
  const [taskID, batchID] = [input.id("task_id"), input.id("batch_id")];
  const sessionID = activeSession(context);
  if (sessionID === undefined) return [];
  if (taskID !== undefined) return [context.known.find(taskID, sessionID)];
  return batchID === undefined ? context.known.list(sessionID) : context.known.batch(batchID, sessionID);
}

function activeSession({ folders }: EditorToolContext): string | undefined {
  return folders.current?.session.id;
}

function nameTask(reference: string, context: EditorToolContext): string {
  try {
    return context.known.find(reference, activeSession(context) ?? "").description;
  } catch {
    return reference;
  }
}

/** A paragraph that shows just the text, whatever is in it. */
function addLine(message: vscode.MarkdownString, text: string): void {
  message.appendText(visible(oneLine(text, LINE))).appendMarkdown("\n\n");
}
