import { homedir } from "node:os";
import * as vscode from "vscode";
import { ToolService } from "./bridge/tool-service.ts";
import { WindowRole } from "./bridge/window-role.ts";
import { ActiveSession } from "./engine/active-session.ts";
import { TaskEngine } from "./engine/engine.ts";
import type { Logger } from "./engine/ports.ts";
import { createOpenCodeConnection } from "./opencode/connection.ts";
import { PluginConfig } from "./opencode/plugin-config.ts";
import { defaultStateFolder } from "./state/private-files.ts";
import { ThreadTokenCounter } from "./tokens/token-counter.ts";
import { systemClock } from "./ui/clock.ts";
import { Connector, type WatchedView } from "./ui/connector.ts";
import type { OpenFolder } from "./ui/folders/folders.ts";
import { FolderState } from "./ui/folders/folder-state.ts";
import { Limit } from "./ui/folders/limit.ts";
import { PasswordStore } from "./ui/passwords.ts";
import { Settings } from "./ui/settings.ts";

/** How many servers are started at once. */
const STARTS_AT_ONCE = 2;

/** What the window gives to its folders. */
export interface FolderHost {
  readonly context: vscode.ExtensionContext;
  readonly view: WatchedView;
  readonly logger: Logger;
}

/** Builds the parts that work on one folder, and joins them; what can be shared by all folders is. */
export function folderOpener({ context, view, logger }: FolderHost): OpenFolder {
  const { env } = process;
  const home = homedir();
  const clock = systemClock;
  const stateFolder = defaultStateFolder({ platform: process.platform, env, home });
  const bundle = (name: string): string => vscode.Uri.joinPath(context.extensionUri, "dist", name).fsPath;
  const passwords = new PasswordStore(context.secrets);
  const tokens = new ThreadTokenCounter({ script: bundle("tokenizer.cjs"), clock });
  context.subscriptions.push(tokens);
  const starts = new Limit(STARTS_AT_ONCE);

  return ({ uri, name, index }) => {
    const parts: { dispose(): unknown }[] = [];
    const own = <T extends { dispose(): unknown }>(part: T): T => {
      parts.push(part);
      return part;
    };

    const directory = uri.fsPath;
    const settings = new Settings(uri);
    const state = new FolderState(context.workspaceState, uri, index === 0);
    const places = { directory, env, home };
    const agentToolsConfig = new PluginConfig({
      bundle: bundle("opencode-plugin.js"),
      stateFolder,
      places,
      logger,
    });
    const connection = own(
      createOpenCodeConnection({
        directory,
        stateFolder,
        settings: () => settings.server(),
        password: async (url) => passwords.get(url),
        watchdogScript: bundle("watchdog.cjs"),
        execPath: process.execPath,
        env,
        serverEnv: async () => {
          if (!settings.agentToolsEnabled()) return env;
          // Tasks of the lowest level may have subagents too. A user's tasks are one level deep, whatever agents may.
          return agentToolsConfig.serverEnv(env, {
            subagentDepth: Math.max(settings.engine().maxDepth, 1) + 1,
          });
        },
        clock,
        logger,
      }),
    );
    const { server } = connection;
    const engine = own(
      new TaskEngine({
        server,
        clock,
        logger,
        random: Math.random,
        tombstones: state,
        tokens,
        settings: () => settings.engine(),
      }),
    );
    const session = own(new ActiveSession(engine, server, logger, state.pickedSession));
    const role = own(new WindowRole({ engine, stateFolder, directory, clock, logger }));
    const connector = own(
      new Connector({
        connection,
        engine,
        session,
        windows: role,
        passwords,
        settings,
        view,
        name,
        starts,
        logger,
      }),
    );
    const toolService = own(
      new ToolService({
        connection: connector,
        isEnabled: () => settings.agentToolsEnabled(),
        known: engine,
        commands: role.commands,
        directory,
        stateFolder,
        clock,
        logger,
      }),
    );

    const followAttention = (): void => connection.setWatched(view.visible || engine.active().length > 0);
    followAttention();
    own(view.onDidChangeVisibility(followAttention));
    own(engine.onDidChange(followAttention));
    own(connection.onDidConnect(() => void agentToolsConfig.refreshPlugin()));
    own(session.onDidChange(() => (state.pickedSession = session.isPicked ? session.id : undefined)));
    own(settings.onDidChange("agentTools", () => toolService.update()));
    own(settings.onDidChange("maxConcurrentTasks", () => void engine.settingsChanged()));
    own(settings.onDidChange("budget", () => void engine.settingsChanged()));
    own(
      settings.onDidChange("server", () => {
        connector
          .reconnect(view.visible)
          .catch((error: unknown) => logger.warn(`Not connected: ${String(error)}`));
      }),
    );

    return {
      uri,
      name,
      settings,
      connection,
      connector,
      engine,
      tasks: role.commands,
      session,
      agentToolsConfig,
      dispose: () => {
        for (const part of parts) part.dispose();
      },
    };
  };
}
