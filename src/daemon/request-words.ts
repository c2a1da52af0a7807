import type { MirroredRequest } from "../engine/folder-changes.ts";
import { visible } from "../engine/plain-text.ts";
import { sentence, type Sentence, type Text } from "../engine/sentence.ts";
import type { PendingRequest, PermissionRequest, QuestionRequest } from "../engine/server-model.ts";
import { relativePath } from "../protocol/relative-path.ts";

/** How a kind of request is told. */
interface Words {
  readonly title: Text;
  readonly icon: string;
  readonly subject: string;
  readonly wish: Sentence;
  /** What is shown in full, if the patterns don't say it. */
  readonly subjects?: readonly string[];
}

type Facts = Readonly<Record<string, unknown>>;

/**
 * A request as windows tell it.
 * @param folder the folder that the agent works in, below which paths are relative
 * @param input the input of the tool call that asks, once known
 */
export function inWords(request: PendingRequest, folder: string, input?: Facts): MirroredRequest {
  const { id, sessionID } = request;
  if (request.type === "question") {
    const { questions } = request;
    return { type: "question", id, sessionID, ...visibly(questionWords(request)), questions };
  }
  const { permission, always, metadata } = request;
  const { subjects: own, ...told } = permissionWords(request, folder, input);
  const words = visibly(told);
  const subjects = own?.map(visible) ?? subjectsOf(request, folder, input);
  // In the input of a tool that isn't OpenCode's own, it can be anything.
  const given = own ? undefined : text(input?.["description"]);
  const reason = text(metadata["reason"]) ?? text(metadata["description"]) ?? given;
  const isTold = reason === undefined || [words.subject, ...subjects].some((one) => one.includes(reason));
  const diff = text(metadata["diff"]);
  return {
    type: "permission",
    id,
    sessionID,
    ...words,
    subjects,
    reason: isTold ? undefined : visible(reason),
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

/**
 * What the answer "always" covers, and for how long: as observed, the server keeps it in memory per folder. Only for
 * requests that offer that answer.
 */
function alwaysWords(always: readonly string[]): Sentence {
  return always.includes("*")
    ? sentence("All requests of this kind, from every agent in this folder, until the server restarts")
    : sentence("{0}, for every agent in this folder, until the server restarts", visible(always.join(", ")));
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

function permissionWords(request: PermissionRequest, folder: string, input: Facts | undefined): Words {
  const { permission, patterns, metadata } = request;
  const listed = patterns.join(", ") || permission;
  const files = patterns.map((pattern) => relativePath(pattern, folder)).join(", ");
  switch (permission) {
    case "bash":
      return {
        title: sentence("Run a Command"),
        icon: "terminal",
        subject: text(metadata["command"]) ?? patterns.join(" && "),
        wish: sentence("{0} asks to run: {1}"),
      };
    case "edit": {
      const path = text(metadata["filepath"]);
      return {
        title: sentence("Change a File"),
        icon: "edit",
        subject: path === undefined ? files : relativePath(path, folder),
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
    case "external_directory":
      return {
        title: sentence("Access Files Outside the Folder"),
        icon: "folder-opened",
        subject: withFolders(text(metadata["command"]) ?? text(metadata["filepath"]), patterns) ?? listed,
        wish: sentence("{0} asks to access files outside the folder: {1}"),
      };
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
        subjects: [subject, callInput(input ?? metadata["input"], 2) ?? []].flat(),
        wish: sentence("{0} asks to use the tool {1}"),
      };
    }
  }
}

/** A command or path, and the folders that it doesn't name itself, such as the one that the command is to run in. */
function withFolders(subject: string | undefined, patterns: readonly string[]): string | undefined {
  if (subject === undefined) return undefined;
  const words = [subject, ...(subject.match(/[^\s"'=;|&<>()]+/g) ?? [])];
  const unnamed = patterns.filter((pattern) => {
    const folder = pattern.replace(/\/\*$/, "");
    return !words.some((word) => word === folder || word.startsWith(`${folder}/`));
  });
  return unnamed.length > 0 ? `${subject} (${unnamed.join(", ")})` : subject;
}

/**
 * What the request is about, each item once. The patterns of a command are its parts, so the whole command stands for
 * them; it may be known only from the input of the tool call.
 */
function subjectsOf(
  { permission, patterns, metadata }: PermissionRequest,
  folder: string,
  toolInput: Facts | undefined,
): readonly string[] {
  const command =
    text(metadata["command"]) ??
    (permission === "bash" ? text(toolInput?.["command"]) : undefined) ??
    (permission === "external_directory" ? text(metadata["filepath"]) : undefined);
  return [
    command ?? [],
    ...patterns
      .filter((pattern) => pattern !== "*" && !command?.includes(pattern))
      .map((pattern) => relativePath(pattern, folder)),
    callInput(metadata["input"], 2) ?? [],
  ]
    .flat()
    .map(visible);
}

function callInput(input: unknown, indent?: number): string | undefined {
  const isCall = typeof input === "object" && input !== null && Object.keys(input).length > 0;
  return isCall ? JSON.stringify(input, undefined, indent) : undefined;
}

/** The value if it is a non-blank string; servers and models may send anything. */
function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
