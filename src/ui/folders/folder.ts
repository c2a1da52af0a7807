import type * as vscode from "vscode";
import type { ActiveSession } from "../../engine/active-session.ts";
import type { ServerConnection } from "../../engine/connection.ts";
import type { TaskEngine } from "../../engine/engine.ts";
import type { Disposable } from "../../engine/event.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { AgentToolsConfig } from "../commands/agent-tools-commands.ts";
import type { Connector } from "../connector.ts";
import type { Settings } from "../settings.ts";

/** A folder of the workspace, with all that works on it: each has a server, a session and tasks of its own. */
export interface Folder extends Disposable {
  readonly uri: vscode.Uri;
  /** As the editor calls it. */
  readonly name: string;
  /** As they hold for this folder. */
  readonly settings: Settings;
  readonly connection: ServerConnection;
  /** The connection as the person sees it. */
  readonly connector: Connector;
  /** What is known of its tasks. */
  readonly engine: TaskEngine;
  /** What changes them; carried out by whichever window writes. */
  readonly tasks: TaskCommands;
  readonly session: ActiveSession;
  /** OpenCode's own configuration of this folder, and of the user. */
  readonly agentToolsConfig: AgentToolsConfig;
}
