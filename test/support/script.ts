/** One answer of the scripted model. Without any field it is an empty answer. */
export interface ScriptStep {
  /** Streamed before the text, as the model's reasoning. */
  readonly reasoning?: string;
  /** Streamed word by word. */
  readonly text?: string;
  /** Streamed after the text: this many chunks … */
  readonly chunks?: number;
  /** … each padded to this many characters (default 6). */
  readonly size?: number;
  /** Milliseconds between two words or chunks (default none). */
  readonly gap?: number;
  /** Tool calls that end the answer. */
  readonly tools?: readonly { readonly name: string; readonly args?: Readonly<Record<string, unknown>> }[];
  /** Answers with this HTTP status instead, with `headers` and `body` where given … */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** … to the first so many attempts (default all); the next attempt gets the rest of the step. */
  readonly times?: number;
  /** Takes the request and never answers. */
  readonly hang?: boolean;
  /** Cuts the connection after the text. */
  readonly drop?: boolean;
  /** Holds the answer, its headers sent, until the gate of this name is released. */
  readonly gate?: string;
  /** Holds it after reasoning and text instead of before. */
  readonly gateAfterText?: boolean;
  /** Holds it while it calls the first tool, whose name it has told by then. */
  readonly gateInCall?: boolean;
  /** The reason given for the end (default `stop`, or `tool_calls` where there are some). */
  readonly finish?: string;
  /** Replaces fields of the token usage told at the end. */
  readonly usage?: Readonly<Record<string, unknown>>;
}

/** A message as the OpenAI protocol has it. */
export interface ModelMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | readonly { readonly type: string; readonly text?: string }[] | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

const scripts = /@@(\[[\s\S]*?\])@@/g;

/** The text of a prompt whose answers are `steps`: one per request to the model until the turn ends. */
export function script(steps: readonly ScriptStep[], text = ""): string {
  // A bare @@ inside the steps would end the script early.
  return `${text}@@${JSON.stringify(steps).replaceAll("@@", "@\\u0040")}@@`;
}

/** The text of a message, whichever form its content has. */
export function messageText(message: ModelMessage | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n");
}

/** The newest user message's text. */
export function lastUserText(messages: readonly ModelMessage[]): string {
  return messageText(messages.findLast((message) => message.role === "user"));
}

/**
 * The step that answers these messages: of the newest user message that holds a script, as many steps in as the model
 * answered since. So one script also says how the model reacts to unscripted messages that follow it. Undefined: no
 * script is left for them.
 */
export function scriptedStep(messages: readonly ModelMessage[]): ScriptStep | undefined {
  for (const [index, message] of [...messages.entries()].reverse()) {
    if (message.role !== "user") continue;
    const source = [...messageText(message).matchAll(scripts)].at(-1)?.[1];
    const steps = source === undefined ? undefined : parseSteps(source);
    if (!steps) continue;
    const since = messages.slice(index + 1);
    const step = steps[since.filter((later) => later.role === "assistant").length];
    const answersScript = !since.some((later) => later.role === "user");
    return step ?? (answersScript ? { text: "done" } : undefined);
  }
  return undefined;
}

/** Undefined where the text is no script (any more): a conversation may have been cut in its middle. */
function parseSteps(source: string): readonly ScriptStep[] | undefined {
  try {
    return JSON.parse(source) as ScriptStep[];
  } catch {
    return undefined;
  }
}
