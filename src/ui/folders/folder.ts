import type * as vscode from "vscode";
import type { Disposable } from "../../engine/event.ts";
import type { ReadModel } from "../../engine/read-model.ts";
import type { Transcript } from "../../engine/transcript.ts";
import type { FolderCalls } from "../../rpc/contract.ts";
import type { Connector } from "../connector.ts";
import type { WindowSession } from "../mirror/window-session.ts";
import type { Settings } from "../settings.ts";
import type { WhileAway } from "../while-away.ts";

/** A workspace folder in this window. Each folder has its own connection, session and tasks. */
export interface Folder extends Disposable {
  readonly uri: vscode.Uri;
  /** The name shown in VS Code. */
  readonly name: string;
  /** The settings that apply to this folder. */
  readonly settings: Settings;
  /** The connection as the user sees it. */
  readonly connector: Connector;
  /** The known tasks of the folder. */
  readonly known: ReadModel;
  /** Calls that change tasks or read on demand. Throws a `Refusal` until the folder is trusted and open. */
  readonly calls: FolderCalls;
  /** Opens the folder at the daemon; repeated calls do nothing. Starts no server. */
  open(): Promise<FolderCalls>;
  /** The conversation of a task or subagent, updated until disposed. */
  openTranscript(id: string): Promise<Transcript>;
  readonly session: WindowSession;
  readonly whileAway: WhileAway;
}
