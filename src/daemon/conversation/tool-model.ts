import type { Message, ToolPart } from "../../engine/server-model.ts";
import { countMatches } from "../../engine/find-text.ts";
import { head } from "../../engine/fork/excerpt.ts";
import { title, visible } from "../../engine/plain-text.ts";
import { diffLines, diffRuns } from "../../protocol/diff-lines.ts";
import { excerpt, excerptOfLines } from "../../protocol/excerpt.ts";
import { TOOL_OUTPUT, type ToolDetail, type ToolEntry } from "../../protocol/output.ts";
import { relativePath } from "../../protocol/relative-path.ts";
import { plainTerminalText } from "../../protocol/terminal-text.ts";
import { changeFields, toolDiff } from "./tool-diff.ts";

/** Fields of a tool's input that name one file. */
const FILE_FIELDS: ReadonlySet<string> = new Set(["filePath", "file_path"]);
/** Fields of a tool's input that summarize the call, most descriptive first. */
const TITLE_FIELDS = [
  "description",
  "command",
  "filePath",
  "pattern",
  "query",
  "url",
  "path",
  "name",
  "prompt",
];
const TITLE_LENGTH = 200;

/** The call as one line of the conversation. */
export function toToolEntry(part: ToolPart, folder: string | undefined): ToolEntry {
  const { id, messageID, tool } = part;
  return {
    kind: "tool",
    id,
    messageID,
    tool,
    title: toolTitle(part, folder),
    hasSession: part.subagent?.sessionID !== undefined,
    ...toolProgress(part),
  };
}

function toolProgress({ state }: ToolPart): Pick<ToolEntry, "status" | "start" | "end"> {
  switch (state.status) {
    case "pending":
      return { status: state.status };
    case "running":
      return { status: state.status, start: state.start };
    case "completed":
    case "error":
      return { status: state.status, start: state.start, end: state.end };
  }
}

/** A one-line summary of the call: the tool's own title, otherwise the most descriptive field of its input. */
function toolTitle({ tool, state }: ToolPart, folder: string | undefined): string | undefined {
  const own = tool !== "question" && "title" in state ? state.title : undefined;
  const found =
    own ||
    TITLE_FIELDS.map((field) => state.input[field]).find((value) => typeof value === "string") ||
    questionsOf(state.input)[0]?.question;
  if (typeof found !== "string" || found === "") return undefined;
  return head(title(relativePath(found, folder)), TITLE_LENGTH);
}

/** The tool call with that ID. */
export function findTool(messages: readonly Message[], partID: string): ToolPart | undefined {
  for (let index = messages.length - 1; index >= 0; index--) {
    const part = messages[index]!.parts.find(({ id }) => id === partID);
    if (part) return part.type === "tool" ? part : undefined;
  }
  return undefined;
}

export function toToolDetail(part: ToolPart, folder?: string): ToolDetail {
  const output = toolText(part, TOOL_OUTPUT);
  const diff = toolDiff(part);
  const shown = new Set(diff === undefined ? [] : changeFields(part.tool));
  return {
    id: part.id,
    input: Object.entries(part.state.input)
      .filter(([name]) => !shown.has(name))
      .map(([name, value]) => {
        const isFile = FILE_FIELDS.has(name) && typeof value === "string";
        const text = printed(value);
        return { name, value: excerpt(isFile ? relativePath(text, folder) : text), isFile };
      }),
    output: output === undefined ? undefined : excerpt(output),
    diff: diff === undefined ? undefined : excerptOfLines(visible(diff)),
  };
}

/** The full text of an input field, or of the output ({@link TOOL_OUTPUT}). */
export function toolText({ subagent, state }: ToolPart, field: string): string | undefined {
  if (field !== TOOL_OUTPUT)
    return Object.hasOwn(state.input, field) ? printed(state.input[field]) : undefined;
  switch (state.status) {
    case "pending":
      return undefined;
    case "running": {
      const sofar = state.metadata?.["output"];
      return typeof sofar === "string" ? sofar : undefined;
    }
    case "completed":
      return subagent ? subagentResult(state.output) : state.output;
    case "error":
      // What a command had printed before it was stopped.
      return [state.partialOutput, state.error].filter(Boolean).join("\n\n");
  }
}

/** What the subagent answered, without the tags in which the server passes it to the model. */
function subagentResult(output: string): string {
  return (
    /^<task id="[^>]*>\n[^]*?<(task_result|task_error)>\n?([^]*?)\n?<\/\1>\s*<\/task>\s*$/.exec(
      output,
    )?.[2] ?? output
  );
}

/** How often the expression matches in each tool call's details, by entry ID. */
export function findInTools(
  messages: readonly Message[],
  expression: RegExp,
  folder: string | undefined,
): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { parts } of messages)
    for (const part of parts) {
      if (part.type !== "tool") continue;
      const texts = shownTexts(toToolDetail(part, folder));
      const count = texts.reduce((sum, text) => sum + countMatches(text, expression), 0);
      if (count > 0) counts[part.id] = count;
    }
  return counts;
}

/** The texts of a call's details as the panel shows them. */
export function shownTexts({ input, diff, output }: ToolDetail): readonly string[] {
  return [
    ...input.flatMap(({ name, value }) => [name, value.text]),
    ...(diff ? diffRuns(diffLines(diff.text)).map(({ text }) => text) : []),
    plainTerminalText(output?.text ?? ""),
  ];
}

/** The path in an input field, if the field names a file. */
export function toolFile(part: ToolPart, field: string): string | undefined {
  const value = FILE_FIELDS.has(field) ? part.state.input[field] : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

function printed(value: unknown): string {
  const questions = questionsOf({ questions: value });
  if (questions.length > 0) return questions.map(printedQuestion).join("\n\n");
  return typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "");
}

interface AskedQuestion {
  readonly question: string;
  readonly options?: readonly { readonly label?: unknown; readonly description?: unknown }[];
}

/** The questions in the input of OpenCode's tool `question`; models may send anything. */
function questionsOf({ questions }: Readonly<Record<string, unknown>>): readonly AskedQuestion[] {
  return Array.isArray(questions) && questions.every(isQuestion) ? questions : [];
}

function isQuestion(value: unknown): value is AskedQuestion {
  if (!isObject(value) || typeof value["question"] !== "string") return false;
  const { options } = value;
  return options === undefined || (Array.isArray(options) && options.every(isObject));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function printedQuestion({ question, options = [] }: AskedQuestion): string {
  const lines = options.map(({ label, description }) =>
    [label, description].filter((text) => typeof text === "string" && text !== "").join(": "),
  );
  return [question, ...lines.map((line) => `- ${line}`)].join("\n");
}
