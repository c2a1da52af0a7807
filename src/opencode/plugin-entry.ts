import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { getNodeValue, type Node } from "jsonc-parser";
import { Refusal } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { appendItem, parseConfig, placeOf, removeItem, replaceNode } from "./json-edit.ts";

/*
 * The plugin's entry in OpenCode configurations. Configurations are edited as text, so that everything that users wrote
 * is preserved.
 */

const FILE_NAME = "opencode-plugin.js";

/** The text of an OpenCode configuration. */
export interface ConfigText {
  /** How users know it: its path, or the name of its environment variable. */
  readonly name: string;
  readonly text: string;
}

/** The path of the plugin. It is not in the extension's folder, which is removed when the extension is updated. */
export function pluginFile(stateFolder: string): string {
  return join(stateFolder, FILE_NAME);
}

/** The plugin's options, besides the state folder, in a server that the extension starts. */
export interface OwnServerSettings {
  /** Whether agents get the tools. */
  readonly tools: boolean;
  /** How long the server keeps running without a daemon, in milliseconds. */
  readonly graceMs: number;
  /** How many levels of subagents OpenCode allows below a session, unless the user's configuration sets this. */
  readonly subagentDepth: number;
}

/** The text of the entry in a configuration. */
export function pluginEntry(stateFolder: string, settings?: OwnServerSettings): string {
  const url = pathToFileURL(pluginFile(stateFolder)).href;
  const options = Object.entries({ stateFolder, ...settings }).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return `[${JSON.stringify(url)}, { ${options.join(", ")} }]`;
}

/** Adds or updates the plugin's entry; returns the same text if it is current. Throws a {@link Refusal}. */
export function addPlugin(config: ConfigText, stateFolder: string, settings?: OwnServerSettings): string {
  const { text } = config;
  const entry = pluginEntry(stateFolder, settings);
  const { root, list, ours } = read(config, stateFolder);
  if (!list) return appendItem(text, root, `"plugin": [${entry}]`);
  const [first, ...others] = ours;
  if (!first) return appendItem(text, list, entry);
  const surplus = others.at(-1);
  if (surplus) {
    const rest = { ...config, text: removeItem(text, surplus) };
    return addPlugin(rest, stateFolder, settings);
  }
  // Normalizes the library's objects, which have no prototype and would compare as different.
  const isCurrent = isDeepStrictEqual(structuredClone(getNodeValue(first)), JSON.parse(entry));
  return isCurrent ? text : replaceNode(text, first, entry);
}

/** Removes the plugin's entries. Returns the same text if there are none. Throws a {@link Refusal} if impossible. */
export function removePlugin(config: ConfigText, stateFolder: string): string {
  const { text } = config;
  const { list, ours } = read(config, stateFolder);
  const last = ours.at(-1);
  if (!list?.parent || !last) return text;
  const isAll = isAllThereIs(text, list.parent, last);
  return removePlugin({ ...config, text: removeItem(text, isAll ? list.parent : last) }, stateFolder);
}

/** Whether a configuration refers to the plugin, even by an older entry. False if the text cannot be parsed. */
export function namesPlugin(config: ConfigText, stateFolder: string): boolean {
  try {
    return read(config, stateFolder).ours.length > 0;
  } catch {
    return false;
  }
}

interface PluginList {
  readonly root: Node;
  /** The value of the property `plugin`. */
  readonly list: Node | undefined;
  readonly ours: readonly Node[];
}

function read({ name, text }: ConfigText, stateFolder: string): PluginList {
  const root = parse(name, text);
  if (root.type !== "object")
    throw unusable(
      sentence("{0} isn't a JSON object. Make it one, then try again. Nothing was changed.", name),
    );
  // If a name occurs more than once, the last one counts.
  const list = root.children?.findLast(({ children }) => children?.[0]?.value === "plugin")?.children?.[1];
  if (list && list.type !== "array")
    throw unusable(
      sentence('"plugin" in {0} isn\'t a list. Make it one, then try again. Nothing was changed.', name),
    );
  const ours = list?.children?.filter((item) => isOurs(getNodeValue(item), stateFolder)) ?? [];
  return { root, list, ours };
}

function parse(name: string, text: string): Node {
  try {
    return parseConfig(text);
  } catch (error) {
    throw unusable(
      error instanceof SyntaxError
        ? sentence(
            "{0} isn't valid JSON ({1}). Fix it, then try again. Nothing was changed.",
            name,
            error.message,
          )
        : sentence("{0} is nested too deeply. Fix it, then try again. Nothing was changed.", name),
    );
  }
}

/** Whether a property would be empty without an item, without even a comment. */
function isAllThereIs(text: string, property: Node, item: Node): boolean {
  const [from, to] = placeOf(property);
  const [start, end] = placeOf(item);
  const rest = text.slice(from, start) + text.slice(end, to);
  return /^"plugin":\[,?\]$/.test(rest.replace(/\s/g, ""));
}

/** Also recognizes older entries with another path of the file, if they have the same state folder. */
function isOurs(entry: unknown, stateFolder: string): boolean {
  const [file, options] = Array.isArray(entry) ? (entry as readonly unknown[]) : [entry];
  if (typeof file !== "string" || !file.replaceAll("\\", "/").endsWith(`/${FILE_NAME}`)) return false;
  const path = pluginFile(stateFolder);
  if (file === path || file === pathToFileURL(path).href) return true;
  return (
    typeof options === "object" &&
    options !== null &&
    "stateFolder" in options &&
    options.stateFolder === stateFolder
  );
}

function unusable(text: Text): Refusal {
  return new Refusal("unavailable", text);
}
