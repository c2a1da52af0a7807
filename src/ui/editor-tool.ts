import * as vscode from "vscode";
import type { AffectedTask, CallPreview, CallQuestion } from "../engine/call-preview.ts";
import { Refusal } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";
import type { Text } from "../engine/sentence.ts";
import type { ToolName } from "../tools/tool.ts";
import { connectedFolder, requireFolder, type Folder, type Folders } from "./folders/folders.ts";
import { modelMessage, translate } from "./messages.ts";
import { visible } from "./plain-text.ts";
import { withRemedy } from "./worktrees/isolated-task.ts";

/** What the tools need of this window. */
export interface EditorToolContext {
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
  readonly tasks: readonly AffectedTask[];
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
    const { folders } = this.context;
    await folders.opened;
    const folder = folders.current;
    const sessionID = folder?.session.id;
    const preview = folder && (await this.preview(folder, input, sessionID).catch(() => undefined));
    // The call itself says what is missing.
    if (!preview) return {};
    const invocationMessage = translate(preview.progress);
    const { question } = preview;
    if (!question) return { invocationMessage };
    const key = JSON.stringify(input);
    const { tasks } = question;
    this.questions.set(key, [...(this.questions.get(key) ?? []), { folder, sessionID, tasks }]);
    const inFolder = folders.all.length > 1 ? [vscode.l10n.t("Folder: {0}", folder.name)] : [];
    return {
      invocationMessage,
      confirmationMessages: {
        title: translate(question.title),
        message: confirmation(question, inFolder),
      },
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
    const { folders, onDidLaunch } = this.context;
    await folders.opened;
    const isLaunch = this.name === "asyncagents_task";
    const current = requireFolder(folders);
    const questions = this.takeQuestions(input);
    const folder = await connectedFolder(folders, questions[0]?.folder ?? current);
    const { session } = folder;
    const known = questions[0]?.sessionID ?? session.id;
    const { question } = await this.preview(folder, input, known);
    // Tasks may have been launched or resumed since the confirmation.
    const isConfirmed = question?.tasks.every((task) => questions.every((asked) => covers(asked, task)));
    if (question && (questions.length === 0 || !isConfirmed)) throw this.changedSince(input);
    // A call that only looks for tasks must not create a session.
    const sessionID = known ?? (isLaunch ? await session.ensure() : "");
    const text = await withRemedy(folder, sessionID, () =>
      folder.calls.callTool(this.name, input, sessionID, signal),
    );
    if (isLaunch) onDidLaunch();
    return text;
  }

  private async preview(folder: Folder, input: object, sessionID: string | undefined): Promise<CallPreview> {
    return folder.calls.previewCall(this.name, input, sessionID);
  }

  /**
   * Returns the confirmations that may belong to a call with this input; the call does only what all of them allow.
   * Throws a {@link Refusal} if they are about different folders or sessions.
   */
  private takeQuestions(input: object): readonly Question[] {
    const key = JSON.stringify(input);
    const questions = this.questions.get(key) ?? [];
    const [first, ...others] = questions;
    const isSamePlace = ({ folder, sessionID }: Question): boolean =>
      folder === first?.folder && sessionID === first.sessionID;
    if (!others.every(isSamePlace)) throw this.changedSince(input);
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

/** Whether the confirmation listed this task, and listed it as running if it is. */
function covers({ sessionID, tasks }: Question, task: AffectedTask): boolean {
  const listed = tasks.find(({ id }) => id === task.id);
  return sessionID === undefined || (listed !== undefined && (listed.isActive || !task.isActive));
}

/** Literal paragraphs, without Markdown, and the prompt. */
function confirmation(
  { facts, prompt, notes }: CallQuestion,
  first: readonly string[],
): vscode.MarkdownString {
  const message = new vscode.MarkdownString();
  const add = (texts: readonly Text[]): void => {
    for (const text of texts) message.appendText(visible(translate(text))).appendMarkdown("\n\n");
  };
  add([...first, ...facts]);
  if (prompt !== undefined) message.appendCodeblock(visible(prompt), "text");
  add(notes);
  return message;
}
