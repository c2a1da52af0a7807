import { access, readFile } from "node:fs/promises";
import { messageOf } from "../engine/errors.ts";
import type { Logger } from "../engine/ports.ts";
import { ensurePrivateFolder, writePrivateFile } from "../state/private-files.ts";
import { configFiles, readConfig, writeConfig } from "./config-file.ts";
import type { ConfigChange, ConfigPlaces, ConfigScope } from "./config-file.ts";
import { addPlugin, namesPlugin, pluginEntry, pluginFile, removePlugin } from "./plugin-entry.ts";
import type { OwnServerSettings } from "./plugin-entry.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What OpenCode merges with the configuration of its files, as text. */
const CONTENT = "OPENCODE_CONFIG_CONTENT";
const NEW_CONFIG = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n';

export interface PluginConfigOptions {
  /** The plugin's bundle, as the extension brings it. */
  readonly bundle: string;
  /** Where the plugin is kept for OpenCode, and where it finds the windows. */
  readonly stateFolder: string;
  readonly places: ConfigPlaces;
  readonly logger: Logger;
}

/** What becomes of a configuration file; nothing if `after` is `before`. */
export interface AgentToolsPlan extends ConfigChange {
  /** The text that names the plugin there. */
  readonly entry: string;
}

/** Makes the plugin of the agent tools known to OpenCode. */
export class PluginConfig {
  constructor(private readonly options: PluginConfigOptions) {}

  /** How a configuration names the plugin. */
  get entry(): string {
    return pluginEntry(this.options.stateFolder);
  }

  /** Puts the plugin of this version where OpenCode takes it from. */
  async copyPlugin(): Promise<void> {
    const { bundle, stateFolder } = this.options;
    const file = pluginFile(stateFolder);
    const code = await readFile(bundle, "utf8");
    const present = await readFile(file, "utf8").catch(() => undefined);
    if (present === code) return;
    await ensurePrivateFolder(stateFolder);
    await writePrivateFile(file, code);
  }

  /** Brings a plugin up to date that an earlier version put there: configurations may name it. Never rejects. */
  async refreshPlugin(): Promise<void> {
    const { stateFolder, logger } = this.options;
    try {
      if (await isThere(pluginFile(stateFolder))) await this.copyPlugin();
    } catch (error) {
      logger.warn(`Couldn't update the agent tools in OpenCode: ${messageOf(error)}`);
    }
  }

  /** The environment for a server that is to have the plugin. Where that cannot be, the same one: it starts without. */
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
   * What installing or removing would do; nothing if `after` is `before`. Undefined: there is no file to remove it from.
   * Throws a `Refusal` where a file cannot be used.
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

  /** Carries a plan out. Throws a `Refusal` if that cannot be; then nothing was changed. */
  async apply(change: ConfigChange): Promise<void> {
    // No configuration may name a plugin that is not there.
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

/** Stands before the text in files of some editors, and is no JSON. */
const BOM = "\uFEFF";

function config(path: string, text: string) {
  return { name: path, text: text.startsWith(BOM) ? text.slice(BOM.length) : text };
}
