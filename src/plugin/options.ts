import { homedir } from "node:os";
import * as z from "zod/mini";
import { defaultStateFolder } from "../state/state-folder.ts";
import type { Patience } from "./forward.ts";

/** What the entry in OpenCode's configuration may set; anything that does not fit counts as left out. */
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
  /** Where endpoints tell how to reach them. */
  readonly stateFolder: string;
  readonly patience: Patience;
  /**
   * How long a write waits to be allowed, in milliseconds. Not longer than nobody notices: a turn that is aborted meanwhile
   * writes all the same.
   */
  readonly writePatienceMs: number;
  /** How deep OpenCode's own subagents may go where the user's configuration does not say; undefined: OpenCode's default. */
  readonly subagentDepth: number | undefined;
  /** Whether agents get the tools. */
  readonly tools: boolean;
  /** How long a server that the extension started stays up where no daemon runs; undefined: it is another's. */
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
    tools = true,
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
