import { TRANSCRIPT_LEGEND } from "../../src/engine/fork/transcript-text.ts";
import { messageText, type ModelMessage } from "./scripted-model.ts";

/** A piece of a conversation as received by a model, whether as messages or as text. */
export type Heard =
  | { readonly speaker: "User" | "Agent"; readonly text: string }
  | {
      readonly callID: string;
      readonly tool: string;
      /** The arguments, shortened as in a text. */
      readonly preview: string;
      readonly result: string;
    }
  /** Only the type of a file is visible in both forms. */
  | { readonly mime: string };

/** What the model of a forked agent receives. */
export interface Received {
  readonly preamble: string;
  readonly prompt: string;
  readonly heard: readonly Heard[];
  /** The messages of the conversation that were sent as messages. */
  readonly native: readonly ModelMessage[];
  /** The conversation sent as text; undefined if none was. */
  readonly text: string | undefined;
}

/** Parses a request to the model, ignoring system messages. */
export function readReceived(messages: readonly ModelMessage[]): Received {
  const inherited = messages.filter(({ role }) => role !== "system");
  const [preamble = "", prompt = "", ...others] = textsOf(inherited.pop());
  if (others.length > 0) throw new Error(`There is more than preamble and prompt: ${others.join("\n")}`);
  const [first] = inherited;
  const isText = first?.role === "user" && messageText(first).startsWith(TRANSCRIPT_LEGEND);
  const text = isText ? messageText(first).slice(TRANSCRIPT_LEGEND.length).trim() : undefined;
  const native = isText ? inherited.slice(1) : inherited;
  return {
    preamble,
    prompt,
    heard: [...(text === undefined ? [] : readTranscript(text)), ...readMessages(native)],
    native,
    text,
  };
}

function textsOf(message: ModelMessage | undefined): readonly string[] {
  const content = message?.content ?? [];
  return typeof content === "string" ? [content] : content.map(({ text = "" }) => text);
}

function readMessages(messages: readonly ModelMessage[]): Heard[] {
  return messages.flatMap((message): Heard[] => {
    if (message.role === "tool") return [];
    const text = messageText(message).trim();
    const said = text === "" ? [] : [{ speaker: message.role === "user" ? "User" : "Agent", text } as const];
    return [...said, ...filesOf(message), ...callsOf(message, messages)];
  });
}

function filesOf({ content }: ModelMessage): Heard[] {
  if (typeof content === "string" || content === null) return [];
  return content.flatMap((part) => {
    const { url } = (part as { readonly image_url?: { readonly url: string } }).image_url ?? {};
    return url === undefined ? [] : [{ mime: /^data:([^;]+);/.exec(url)?.[1] ?? url }];
  });
}

function callsOf({ tool_calls: calls = [] }: ModelMessage, messages: readonly ModelMessage[]): Heard[] {
  return calls.map(({ id, function: { name, arguments: args } }) => {
    const results = messages.filter(({ tool_call_id }) => tool_call_id === id);
    if (results.length !== 1) throw new Error(`Call ${id} has ${results.length} results.`);
    const preview = args.length > 200 ? `${args.slice(0, 200)}…` : args;
    return { callID: id, tool: name, preview, result: messageText(results[0]).trim() };
  });
}

/** Parses a transcript line by line, following its legend. */
function readTranscript(text: string): Heard[] {
  const heard: Record<string, string>[] = [];
  let grown = "text";
  const begin = (what: Record<string, string>, field: string): void => {
    heard.push(what);
    grown = field;
  };
  for (const line of text.split("\n")) {
    const said = /^(User|Agent):(.*)$/.exec(line);
    const called = /^\[Tool: (\S+)\] (.*)$/.exec(line);
    const result = /^\[Result of (\S+)\] (?:Error: )?(.*)$/.exec(line);
    const file = /^\[File: .*?, (\w+\/\w+).*\]$/.exec(line);
    const last = heard.at(-1);
    if (said) begin({ speaker: said[1] ?? "", text: unquoted((said[2] ?? "").trimStart()) }, "text");
    else if (called) begin({ callID: "", tool: called[1] ?? "", preview: called[2] ?? "" }, "result");
    else if (result && last) Object.assign(last, { callID: result[1], result: unquoted(result[2]) });
    else if (file) begin({ mime: file[1] ?? "" }, "");
    else if (last && grown !== "") last[grown] = `${last[grown] ?? ""}\n${unquoted(line)}`;
  }
  for (const what of heard)
    for (const field of ["text", "result"]) if (field in what) what[field] = (what[field] ?? "").trim();
  return heard.filter(({ text }) => text !== "") as unknown as Heard[];
}

function unquoted(line = ""): string {
  return line.replace(/^> (?=User:|Agent:|\[Tool:|\[Result of|\[File:)/, "");
}
