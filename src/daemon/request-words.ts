import { resolve } from "node:path";
import type { MirroredRequest } from "../engine/folder-changes.ts";
import { visible } from "../engine/plain-text.ts";
import { sentence, type Sentence, type Text } from "../engine/sentence.ts";
import type { PendingRequest, PermissionRequest, QuestionRequest, ToolCall } from "../engine/server-model.ts";
import { filesToWrite } from "../opencode/file-tools.ts";
import { relativePath } from "../protocol/relative-path.ts";

/** How a kind of request is told. */
interface Words {
  readonly title: Text;
  readonly icon: string;
  readonly subject: string;
  readonly wish: Sentence;
  /** What is shown in full, if it isn't the command and the patterns. */
  readonly subjects?: readonly string[];
}

type Facts = Readonly<Record<string, unknown>>;

/**
 * A request as windows tell it.
 * @param folder the folder that the agent works in, below which paths are relative
 * @param call the tool call that asks, once known
 */
export function inWords(request: PendingRequest, folder: string, call?: ToolCall): MirroredRequest {
  const { id, sessionID } = request;
  if (request.type === "question") {
    const { questions } = request;
    return { type: "question", id, sessionID, ...visibly(questionWords(request)), questions };
  }
  const { permission, always, metadata } = request;
  const { subjects: own, ...told } = permissionWords(request, folder, call);
  const words = visibly(told);
  const subjects = (own ?? subjectsOf(request, folder, call)).map(visible);
  // In the input of a tool that isn't OpenCode's own, it can be anything.
  const given = own ? undefined : text(call?.input["description"]);
  const reason = text(metadata["reason"]) ?? text(metadata["description"]) ?? given;
  const isSaid = reason === undefined || [words.subject, ...subjects].some((one) => one.includes(reason));
  const diff = text(metadata["diff"]);
  const isKnown = call !== undefined || request.call === undefined;
  return {
    type: "permission",
    id,
    sessionID,
    ...words,
    subjects,
    isTold: isKnown && diff === undefined && isAll(words.subject, subjects),
    reason: isSaid ? undefined : visible(reason),
    diff: diff && visible(diff),
    permission,
    // Without patterns it would be unclear what is allowed.
    always: always.length > 0 ? alwaysWords(always) : undefined,
  };
}

function visibly(words: Words): Words {
  const { title, subject } = words;
  return {
    ...words,
    title: typeof title === "string" ? visible(title) : title,
    subject: visible(subject),
  };
}

/** Whether the subject names everything that is shown in full, but for white space. */
function isAll(subject: string, subjects: readonly string[]): boolean {
  const dense = (one: string): string => folderOf(one).replace(/\s/g, "");
  return subjects.every((one) => dense(subject).includes(dense(one)));
}

/**
 * What the answer "always" covers, and for how long: as observed, the server keeps it in memory per folder, and lets it
 * prevail over all rules of agents and sessions. Only for requests that offer that answer.
 */
function alwaysWords(always: readonly string[]): Sentence {
  return always.includes("*")
    ? sentence(
        "All of this kind, for all agents in this folder, even where denied, until the server restarts",
      )
    : sentence(
        "{0}, for all agents in this folder, even where denied, until the server restarts",
        visible(always.join(", ")),
      );
}

function questionWords({ questions }: QuestionRequest): Words {
  const [first] = questions;
  const title = text(first?.header) ?? sentence("Question");
  return {
    title,
    icon: "question",
    subject: first?.question ?? "",
    wish:
      [sentence("{0} asks: {1}"), sentence("{0} asks: {1} (and 1 more question)")][questions.length - 1] ??
      sentence("{0} asks: {1} (and {2} more questions)"),
  };
}

function permissionWords(request: PermissionRequest, folder: string, call: ToolCall | undefined): Words {
  const { permission, patterns, metadata } = request;
  const listed = patterns.join(", ") || permission;
  const files = patterns.map((pattern) => relativePath(pattern, folder)).join(", ");
  switch (permission) {
    case "bash":
      return {
        title: sentence("Run a Command"),
        icon: "terminal",
        subject: withPlaces(text(metadata["command"]) ?? patterns.join(" && "), placeOf(call, folder)),
        wish: sentence("{0} asks to run: {1}"),
      };
    case "edit": {
      const path = text(metadata["filepath"]);
      const moves = movesOf(request, folder);
      return {
        title: sentence("Change a File"),
        icon: "edit",
        subject: moves?.join(", ") ?? (path === undefined ? files : relativePath(path, folder)),
        ...(moves && { subjects: moves }),
        wish: sentence("{0} asks to change {1}"),
      };
    }
    case "read":
      return {
        title: sentence("Read a File"),
        icon: "file",
        subject: files,
        wish: sentence("{0} asks to read {1}"),
      };
    case "external_directory": {
      const command = text(metadata["command"]);
      const subject = command ?? text(metadata["filepath"]);
      const told = {
        icon: "folder-opened",
        subject:
          subject === undefined
            ? listed
            : withPlaces(subject, withoutDoubles([...placeOf(call, folder), ...unnamed(subject, patterns)])),
      };
      // By OpenCode's defaults, this is the only time that it asks.
      if (call && filesToWrite(call.tool, call.input, folder).length > 0)
        return {
          ...told,
          title: sentence("Change a File Outside the Folder"),
          subjects: [...subjectsOf(request, folder, call), inputText(call.input)],
          wish: sentence("{0} asks to change a file outside the folder: {1}"),
        };
      return {
        ...told,
        title: sentence("Access Files Outside the Folder"),
        wish: sentence("{0} asks to access files outside the folder: {1}"),
      };
    }
    case "webfetch":
      return {
        title: sentence("Fetch a Web Page"),
        icon: "globe",
        subject: text(metadata["url"]) ?? listed,
        wish: sentence("{0} asks to fetch {1}"),
      };
    case "websearch":
    case "codesearch":
      return {
        title: sentence("Search the Web"),
        icon: "globe",
        subject: text(metadata["query"]) ?? listed,
        wish: sentence("{0} asks to search the web for: {1}"),
      };
    case "glob":
    case "grep":
    case "list":
      return {
        title: sentence("Search Files"),
        icon: "search",
        subject: listed,
        wish: sentence("{0} asks to search files for: {1}"),
      };
    case "task": {
      const subject = [text(metadata["subagent_type"]) ?? listed, text(metadata["description"])]
        .filter(Boolean)
        .join(": ");
      return {
        title: sentence("Launch a Subagent"),
        icon: "hubot",
        subject,
        subjects: [subject],
        wish: sentence("{0} asks to launch the subagent {1}"),
      };
    }
    case "skill":
      return {
        title: sentence("Use a Skill"),
        icon: "lightbulb",
        subject: listed,
        wish: sentence("{0} asks to use the skill {1}"),
      };
    case "doom_loop":
      return {
        title: sentence("Continue Repeating"),
        icon: "warning",
        subject: [text(metadata["tool"]) ?? listed, callInput(metadata["input"])].filter(Boolean).join(" "),
        wish: sentence("{0} made the same call several times and asks to continue: {1}"),
      };
    default: {
      const subject = patterns.every((pattern) => pattern === "*") ? permission : `${permission}: ${listed}`;
      return {
        title: sentence("Use a Tool"),
        icon: "tools",
        subject,
        subjects: [subject, callInput(call?.input ?? metadata["input"], 2) ?? []].flat(),
        wish: sentence("{0} asks to use the tool {1}"),
      };
    }
  }
}

/** A command or path, and what else it concerns. */
function withPlaces(subject: string, places: readonly string[]): string {
  return places.length > 0 ? `${subject} (${places.join(", ")})` : subject;
}

/** The folders that a command or path doesn't name itself. */
function unnamed(subject: string, patterns: readonly string[]): readonly string[] {
  const words = [subject, ...(subject.match(/[^\s"'=;|&<>()]+/g) ?? [])];
  return patterns.filter((pattern) => {
    const folder = folderOf(pattern);
    return !words.some((word) => word === folder || word.startsWith(`${folder}/`));
  });
}

/** The folder of a pattern for all that is in it. */
function folderOf(pattern: string): string {
  return pattern.replace(/[\\/]\*$/, "");
}

/** Without patterns for folders that are there themselves. */
function withoutDoubles(places: readonly string[]): readonly string[] {
  return places.filter((one) => folderOf(one) === one || !places.includes(folderOf(one)));
}

/** Where a command runs, if that isn't the folder. */
function placeOf(call: ToolCall | undefined, folder: string): readonly string[] {
  const workdir = call?.tool === "bash" ? text(call.input["workdir"]) : undefined;
  const place = resolve(folder, workdir ?? "");
  return place === resolve(folder) ? [] : [relativePath(place, folder)];
}

/** The files of a patch, each with where it goes. Undefined if none goes anywhere. */
function movesOf({ files = [] }: PermissionRequest, folder: string): readonly string[] | undefined {
  if (files.every(({ movedTo }) => movedTo === undefined)) return undefined;
  return files.map(({ path, movedTo }) =>
    [path, movedTo ?? []]
      .flat()
      .map((one) => relativePath(one, folder))
      .join(" → "),
  );
}

/** The input of a call, with its texts as they are. */
function inputText(input: Facts): string {
  const values = Object.entries(input).map(([name, value]) => {
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    return shown.includes("\n") ? `${name}:\n${shown}` : `${name}: ${shown}`;
  });
  return values.join("\n");
}

/**
 * What the request is about, each item once. The patterns of a command are its parts, so the whole command stands for
 * them; it may be known only from the input of the tool call.
 */
function subjectsOf(
  { permission, patterns, metadata }: PermissionRequest,
  folder: string,
  call: ToolCall | undefined,
): readonly string[] {
  const command =
    text(metadata["command"]) ??
    (permission === "bash" ? text(call?.input["command"]) : undefined) ??
    (permission === "external_directory" ? text(metadata["filepath"]) : undefined);
  return [
    command ?? [],
    withoutDoubles([
      ...placeOf(call, folder),
      ...patterns
        .filter((pattern) => pattern !== "*" && !command?.includes(pattern))
        .map((pattern) => relativePath(pattern, folder)),
    ]),
    callInput(metadata["input"], 2) ?? [],
  ].flat();
}

function callInput(input: unknown, indent?: number): string | undefined {
  const isCall = typeof input === "object" && input !== null && Object.keys(input).length > 0;
  return isCall ? JSON.stringify(input, undefined, indent) : undefined;
}

/** The value if it is a non-blank string; servers and models may send anything. */
function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
