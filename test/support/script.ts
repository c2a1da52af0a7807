/** One answer of the scripted model; empty if no field is set. */
export interface ScriptStep {
  /** Streamed before the text as reasoning. */
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
  /** Answers with this HTTP status instead, with `headers` and `body` if given … */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** … for this many attempts (default all); the next attempt gets the rest of the step. */
  readonly times?: number;
  /** Accepts the request and never answers. */
  readonly hang?: boolean;
  /** Cuts the connection after the text. */
  readonly drop?: boolean;
  /** Holds the answer, after sending its headers, until the gate with this name is released. */
  readonly gate?: string;
  /** Holds the answer after reasoning and text instead. */
  readonly gateAfterText?: boolean;
  /** Holds the answer during the first tool call, after sending the tool's name. */
  readonly gateInCall?: boolean;
  /** The finish reason (default `stop`, or `tool_calls` if there are any). */
  readonly finish?: string;
  /** Overrides fields of the token usage reported at the end. */
  readonly usage?: Readonly<Record<string, unknown>>;
}

/** A message in the OpenAI protocol. */
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

/** A prompt text that scripts the answers: one step per request to the model until the turn ends. */
export function script(steps: readonly ScriptStep[], text = ""): string {
  // A bare @@ inside the steps would end the script early.
  return `${text}@@${JSON.stringify(steps).replaceAll("@@", "@\\u0040")}@@`;
}

/** The text of a message, in either form of its content. */
export function messageText(message: ModelMessage | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n");
}

/** The newest user message's text. */
export function lastUserText(messages: readonly ModelMessage[]): string {
  return messageText(messages.findLast((message) => message.role === "user"));
}

/**
 * The step for these messages. It comes from the newest user message with a script; its index is the number of the
 * model's answers since then. So a script also covers unscripted messages that follow it. Undefined if no step is left.
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

/** Undefined if the text isn't a valid script: a conversation may have been cut in the middle of one. */
function parseSteps(source: string): readonly ScriptStep[] | undefined {
  try {
    return JSON.parse(source) as ScriptStep[];
  } catch {
    return undefined;
  }
}
