import type * as vscode from "vscode";
import type { Disposable } from "../../engine/event.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import type { Transcript } from "../../engine/transcript.ts";
import type { FolderCalls } from "../../rpc/contract.ts";
import type { Connector } from "../connector.ts";
import type { WindowSession } from "../mirror/window-session.ts";
import type { Settings } from "../settings.ts";
import type { WhileAway } from "../while-away.ts";

/** A folder of the workspace, with what this window has of it: each has a server, a session and tasks of its own. */
export interface Folder extends Disposable {
  readonly uri: vscode.Uri;
  /** As the editor calls it. */
  readonly name: string;
  /** As they hold for this folder. */
  readonly settings: Settings;
  /** The connection as the user sees it. */
  readonly connector: Connector;
  /** What is known of its tasks. */
  readonly known: ReadModel;
  /** What changes them, and what is read on demand. Throws a `Refusal` until the folder is trusted and opened. */
  readonly calls: FolderCalls;
  /** Opens it at the daemon; again, it does nothing. No server is started. */
  open(): Promise<FolderCalls>;
  /** The conversation of a task or subagent, followed live until disposed. */
  openTranscript(id: string): Promise<Transcript>;
  readonly session: WindowSession;
  readonly whileAway: WhileAway;
}
