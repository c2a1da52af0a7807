import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { getNodeValue, type Node } from "jsonc-parser";
import { Refusal } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { appendItem, parseConfig, placeOf, removeItem, replaceNode } from "./json-edit.ts";

/*
 * The entry by which an OpenCode configuration names the plugin of the agent tools. Configurations are text here: what
 * users wrote in them stays.
 */

const FILE_NAME = "opencode-plugin.js";

/** Some OpenCode configuration. */
export interface ConfigText {
  /** What users know it by: its path, or the name of its variable. */
  readonly name: string;
  readonly text: string;
}

/** Where the plugin lies. Not where the extension does: that folder goes with the extension's next version. */
export function pluginFile(stateFolder: string): string {
  return join(stateFolder, FILE_NAME);
}

/** What the plugin of a server that the extension starts is told beside its state folder. */
export interface OwnServerSettings {
  /** Whether agents get the tools. */
  readonly tools: boolean;
  /** How long the server stays up where no daemon runs, in milliseconds. */
  readonly graceMs: number;
  /** How many levels of subagents OpenCode allows below a session, where the user's configuration says nothing. */
  readonly subagentDepth: number;
}

/** The entry as it is written into a configuration. */
export function pluginEntry(stateFolder: string, settings?: OwnServerSettings): string {
  const url = pathToFileURL(pluginFile(stateFolder)).href;
  const options = Object.entries({ stateFolder, ...settings }).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return `[${JSON.stringify(url)}, { ${options.join(", ")} }]`;
}

/** The same text if the plugin is named in it already. Throws a {@link Refusal} if it cannot be. */
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
  // The library's objects have no prototype, which counts in the comparison.
  const isCurrent = isDeepStrictEqual(structuredClone(getNodeValue(first)), JSON.parse(entry));
  return isCurrent ? text : replaceNode(text, first, entry);
}

/** The same text if the plugin is not named in it. Throws a {@link Refusal} if it cannot be taken out. */
export function removePlugin(config: ConfigText, stateFolder: string): string {
  const { text } = config;
  const { list, ours } = read(config, stateFolder);
  const last = ours.at(-1);
  if (!list?.parent || !last) return text;
  const isAll = isAllThereIs(text, list.parent, last);
  return removePlugin({ ...config, text: removeItem(text, isAll ? list.parent : last) }, stateFolder);
}

/** Whether the plugin is named there, even if by an older entry. A text that cannot be read names nothing. */
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
  // Of a name that is given twice, the last counts.
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

/** Whether a property would hold nothing without an item, not even a comment. */
function isAllThereIs(text: string, property: Node, item: Node): boolean {
  const [from, to] = placeOf(property);
  const [start, end] = placeOf(item);
  const rest = text.slice(from, start) + text.slice(end, to);
  return /^"plugin":\[,?\]$/.test(rest.replace(/\s/g, ""));
}

/** An entry of ours may be older: with another place of the file, but for the same state folder. */
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
