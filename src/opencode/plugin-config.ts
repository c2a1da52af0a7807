import { access } from "node:fs/promises";
import { messageOf } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";
import { copyPrivateFile, ensurePrivateFolder } from "../state/private-files.ts";
import { configFiles, readConfig, writeConfig } from "./config-file.ts";
import type { ConfigChange, ConfigPlaces, ConfigScope } from "./config-file.ts";
import { addPlugin, namesPlugin, pluginEntry, pluginFile, removePlugin } from "./plugin-entry.ts";
import type { OwnServerSettings } from "./plugin-entry.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The variable with a configuration, as text, that OpenCode merges with its configuration files. */
const CONTENT = "OPENCODE_CONFIG_CONTENT";
const NEW_CONFIG = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n';

export interface PluginConfigOptions {
  /** The path of the plugin's bundle in the extension. */
  readonly bundle: string;
  /** The folder from which OpenCode loads the plugin, and in which the plugin finds endpoints. */
  readonly stateFolder: string;
  readonly places: ConfigPlaces;
  readonly logger: Logger;
}

/** A planned change of a configuration file. Changes nothing if `after` equals `before`. */
export interface AgentToolsPlan extends ConfigChange {
  /** The entry of the plugin in the text. */
  readonly entry: string;
}

/** Registers the plugin with the agent tools in OpenCode. */
export class PluginConfig {
  constructor(private readonly options: PluginConfigOptions) {}

  /** The plugin's entry in configurations. */
  get entry(): string {
    return pluginEntry(this.options.stateFolder);
  }

  /**
   * Copies this version of the plugin to where OpenCode loads it from. If the extension was removed since the daemon
   * started, such as after an update, the copy that is there has to do.
   */
  async copyPlugin(): Promise<void> {
    const { bundle, stateFolder } = this.options;
    await ensurePrivateFolder(stateFolder);
    if (!(await isThere(bundle)) && (await isThere(pluginFile(stateFolder)))) return;
    await copyPrivateFile(bundle, pluginFile(stateFolder));
  }

  /** Updates the plugin if an earlier version installed it, as configurations may refer to it. Never rejects. */
  async refreshPlugin(): Promise<void> {
    const { stateFolder, logger } = this.options;
    try {
      if (await isThere(pluginFile(stateFolder))) await this.copyPlugin();
    } catch (error) {
      logger.warn(`Couldn't update the agent tools in OpenCode: ${messageOf(error)}`);
    }
  }

  /** The environment for a server with the plugin. If that fails, the given one, for a server without it. */
  async serverEnv(env: Environment, settings: OwnServerSettings): Promise<Environment> {
    try {
      const content = env[CONTENT]?.trim() || "{}";
      const merged = addPlugin({ name: CONTENT, text: content }, this.options.stateFolder, settings);
      await this.copyPlugin();
      return { ...env, [CONTENT]: merged };
    } catch (error) {
      this.options.logger.warn(`Starting OpenCode without the agent tools: ${messageOf(error)}`);
      return env;
    }
  }

  /**
   * Plans to install or remove the plugin. Changes nothing if `after` equals `before`. Undefined if there is no file to
   * remove it from. Throws a `Refusal` if a file cannot be used.
   */
  async plan(action: "install" | "remove", scope: ConfigScope): Promise<AgentToolsPlan | undefined> {
    const { stateFolder, places } = this.options;
    const paths = configFiles(scope, places);
    const files = (await Promise.all(paths.map(readConfig))).filter((file) => file !== undefined);
    const naming = files.find(({ path, text }) => namesPlugin(config(path, text), stateFolder));
    const { path, text } = naming ?? files[0] ?? { path: paths[0], text: undefined };
    if (text === undefined && action === "remove") return undefined;
    const edit = action === "install" ? addPlugin : removePlugin;
    const bom = text?.startsWith(BOM) ? BOM : "";
    const after = bom + edit(config(path, text ?? NEW_CONFIG), stateFolder);
    return { path, before: text, after, entry: this.entry };
  }

  /** Applies a plan. Throws a `Refusal` if that fails, and then nothing was changed. */
  async apply(change: ConfigChange): Promise<void> {
    // A configuration must not refer to a plugin that does not exist.
    if (namesPlugin(config(change.path, change.after), this.options.stateFolder)) await this.copyPlugin();
    await writeConfig(change);
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The byte order mark that some editors put before the text. It is not valid JSON. */
const BOM = "\uFEFF";

function config(path: string, text: string) {
  return { name: path, text: text.startsWith(BOM) ? text.slice(BOM.length) : text };
}
