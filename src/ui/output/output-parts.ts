import type { Child } from "../../engine/subagent.ts";
import type { Event } from "../../engine/event.ts";
import type { Logger } from "../../engine/ports.ts";
import type { Text } from "../../engine/sentence.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { ConnectionView, HostMessage, PanelCommand, ReturnedText } from "../../protocol/output.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { FilePosition } from "./file-reference.ts";

/** What all panels share. */
export interface OutputParts {
  readonly known: Pick<
    Tasks,
    | "child"
    | "children"
    | "session"
    | "openConversation"
    | "lastAnswer"
    | "openRequests"
    | "explainRequest"
    | "image"
    | "onDidChange"
    | "onDidChangeSubagent"
    | "onDidChangeRequests"
  >;
  readonly tasks: Pick<TaskCommands, "resume" | "steer" | "withdraw" | "continue" | "answer" | "output">;
  readonly logger: Logger;
}

/** What a panel needs of the editor. */
export interface OutputEditor {
  /** The texts of the page, by their English text. */
  readonly translations: Readonly<Record<string, string>>;
  /** Names the agent of another task or subagent. */
  asker(child: Child): string;
  /** The folder that the agent works in. */
  folder(): string | undefined;
  /** The connection of the session's folder. */
  connection(): ConnectionView;
  readonly onDidChangeConnection: Event<void>;
  post(message: HostMessage): void;
  /** Shows the title and the state of the task in the panel's tab. */
  showInTab(child: Child): void;
  /** The user works in the panel, which must not show another task then. */
  keep(): void;
  /** Resolves when the command has ended; to undefined if it did nothing. */
  run(command: PanelCommand): PromiseLike<unknown>;
  /** The extension in `name` determines the language. */
  openDocument(name: string, text: string): void;
  /** Rejects with an error whose message says why the file was not opened. */
  openFile(path: string, position?: FilePosition): Promise<void>;
  openExternal(url: string): void;
  /** Shows the output of another session. */
  openSession(id: string): void;
  copyText(text: string): void;
  /** Offers a text that returned after its panel was closed. Without a text, tells only of the error. */
  offerText(returned: ReturnedText): void;
  /** The message of an error. */
  describe(error: unknown): string;
  translate(text: Text): string;
}
