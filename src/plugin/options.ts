import { homedir } from "node:os";
import * as z from "zod/mini";
import { defaultStateFolder } from "../state/state-folder.ts";
import type { Patience } from "./forward.ts";

/** The options in the plugin's entry in OpenCode's configuration. Invalid values count as missing. */
const pluginOptions = z.catch(
  z.object({
    stateFolder: z.catch(z.optional(z.string()), undefined),
    patienceMs: z.catch(z.optional(z.number()), undefined),
    reloadPatienceMs: z.catch(z.optional(z.number()), undefined),
    writePatienceMs: z.catch(z.optional(z.number()), undefined),
    subagentDepth: z.catch(z.optional(z.number()), undefined),
    tools: z.catch(z.optional(z.boolean()), undefined),
    graceMs: z.catch(z.optional(z.number()), undefined),
  }),
  {},
);

export interface PluginSettings {
  /** The folder in which endpoints publish their entries. */
  readonly stateFolder: string;
  readonly patience: Patience;
  /**
   * How long a write waits for permission, in milliseconds. Kept short enough not to be noticed, because a turn aborted
   * during the wait still writes.
   */
  readonly writePatienceMs: number;
  /** The levels of OpenCode's own subagents if the user's configuration sets none. Undefined: OpenCode's default. */
  readonly subagentDepth: number | undefined;
  /** Whether agents get the tools. Undefined if the entry doesn't say: then only those of OpenCode 1 do. */
  readonly tools: boolean | undefined;
  /** How long a server that the extension started keeps running without a daemon. Undefined for other servers. */
  readonly graceMs: number | undefined;
}

export function readOptions(options: unknown): PluginSettings {
  const parsed = z.parse(pluginOptions, options);
  const {
    stateFolder,
    patienceMs,
    reloadPatienceMs,
    writePatienceMs = 200,
    subagentDepth,
    tools,
    graceMs,
  } = parsed;
  return {
    stateFolder:
      stateFolder ?? defaultStateFolder({ platform: process.platform, env: process.env, home: homedir() }),
    patience: { untakenMs: patienceMs ?? 10_000, takenMs: reloadPatienceMs ?? 60_000 },
    writePatienceMs,
    subagentDepth,
    tools,
    graceMs,
  };
}
