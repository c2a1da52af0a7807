import { DECLARATIONS } from "../tools/declarations.ts";
import { toolInputSchema } from "../tools/input-schema.ts";
import { forward } from "./forward.ts";
import { readOptions } from "./options.ts";

/* The parts of OpenCode 2's plugin interface that this plugin uses, according to its source. They were never run. */

export interface SetupContext {
  /** Where the plugin is loaded: once per folder. */
  readonly location: { readonly directory: string };
  /** Releases before `server` was added leave it out. */
  readonly app?: { readonly server?: { readonly url: string } | undefined } | undefined;
  /** The options in the plugin's entry in OpenCode's configuration. */
  readonly options: unknown;
  readonly tool: {
    transform(change: (tools: { add(tool: SetupTool): void }) => void): Promise<unknown>;
  };
}

export interface SetupTool {
  readonly name: string;
  readonly description: string;
  /** A JSON schema. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Without `codemode: false`, models can only call the tool from a script. */
  readonly options: { readonly codemode: false };
  /** `input` comes from the model. A rejection would end the whole turn. */
  execute(input: unknown, call: SetupCall): Promise<SetupResult>;
}

interface SetupCall {
  readonly sessionID: string;
  readonly messageID: string;
  readonly id: string;
  /** Aborts with the turn. */
  readonly signal: AbortSignal;
}

interface SetupResult {
  /** What the model reads. */
  readonly content: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * What OpenCode 2 calls in place of `server`: gives agents the tools if the plugin's options ask for them, and otherwise
 * nothing. An entry that users added for OpenCode 1 does not ask, and no tool would work there.
 */
export async function setup({ location, app, options, tool }: SetupContext): Promise<void> {
  const { stateFolder, patience, tools } = readOptions(options);
  if (tools !== true || app?.server === undefined) return;
  const place = {
    stateFolder,
    directory: location.directory,
    server: new URL(app.server.url),
    patience,
    reopens: true,
  };
  const carryOut = async (name: string, input: unknown, call: SetupCall): Promise<SetupResult> => {
    const { sessionID, messageID, id: callID, signal } = call;
    // Without `permitted`, a launch that needs the user's permission is refused: the plugin has no way to ask.
    const reply = await forward({ tool: name, input, sessionID, messageID, callID }, { ...place, signal });
    return reply.type === "result"
      ? { content: reply.text, metadata: { title: reply.title, ...reply.metadata } }
      : refusal(reply.message);
  };
  await tool.transform((editor) => {
    for (const declaration of DECLARATIONS)
      editor.add({
        name: declaration.name,
        description: declaration.description,
        input: toolInputSchema(declaration),
        options: { codemode: false },
        execute: (input, call) =>
          carryOut(declaration.name, input, call).catch((error: unknown) =>
            refusal(error instanceof Error ? error.message : String(error)),
          ),
      });
  });
}

const refusal = (content: string): SetupResult => ({ content, metadata: {} });
