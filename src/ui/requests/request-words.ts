import { l10n, workspace } from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import type { PendingRequest, PermissionRequest, QuestionRequest } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import { visible } from "../plain-text.ts";
import { text } from "./request-facts.ts";

/**
 * A permission or question in words. The plain texts may contain anything that agents and models wrote: whoever shows
 * them where text can become links or icons has to sanitize them.
 */
export interface RequestWords {
  /** The kind of request as a heading: `Run a Command`. */
  readonly title: string;
  /** A codicon's name. */
  readonly icon: string;
  /** The full subject: the command, file, address or question. */
  readonly subject: string;
  /** The sentence in which `who` asks for this; `subject` is what is shown of the subject. */
  readonly sentence: (who: string, subject: string) => string;
}

export function requestWords(request: PendingRequest): RequestWords {
  const words = request.type === "permission" ? permissionWords(request) : questionWords(request);
  return { ...words, title: visible(words.title), subject: visible(words.subject) };
}

/** The agent that asks: `"Push the branch" (general)`. */
export function asker({ agent, description }: Pick<Child, "agent" | "description">): string {
  // A direction-changing character would also affect the subject that follows.
  const task = visible(oneLine(description));
  return agent === undefined
    ? l10n.t('The agent of "{0}"', task)
    : l10n.t('"{1}" ({0})', visible(agent), task);
}

/**
 * What the answer "always" covers, and for how long: as observed, the server keeps it in memory per folder. Only for
 * requests that offer that answer.
 */
export function alwaysWords({ always }: PermissionRequest): string {
  return always.includes("*")
    ? l10n.t("All requests of this kind, from every agent in this folder, until the server restarts")
    : l10n.t("{0}, for every agent in this folder, until the server restarts", visible(always.join(", ")));
}

function questionWords({ questions }: QuestionRequest): RequestWords {
  const [first] = questions;
  const title = text(first?.header) ?? l10n.t("Question");
  const more = questions.length - 1;
  return {
    title,
    icon: "question",
    subject: first?.question ?? title,
    sentence: (who, subject) => {
      if (more === 0) return l10n.t("{0} asks: {1}", who, subject);
      return more === 1
        ? l10n.t("{0} asks: {1} (and 1 more question)", who, subject)
        : l10n.t("{0} asks: {1} (and {2} more questions)", who, subject, more);
    },
  };
}

function permissionWords(request: PermissionRequest): RequestWords {
  const { permission, patterns, metadata } = request;
  const listed = patterns.join(", ") || permission;
  switch (permission) {
    case "bash":
      return {
        title: l10n.t("Run a Command"),
        icon: "terminal",
        subject: text(metadata["command"]) ?? patterns.join(" && "),
        sentence: (who, subject) => l10n.t("{0} asks to run: {1}", who, subject),
      };
    case "edit":
      return {
        title: l10n.t("Change a File"),
        icon: "edit",
        subject: file(metadata["filepath"]) ?? files(patterns),
        sentence: (who, subject) => l10n.t("{0} asks to change {1}", who, subject),
      };
    case "read":
      return {
        title: l10n.t("Read a File"),
        icon: "file",
        subject: files(patterns),
        sentence: (who, subject) => l10n.t("{0} asks to read {1}", who, subject),
      };
    case "external_directory":
      return {
        title: l10n.t("Access Files Outside the Folder"),
        icon: "folder-opened",
        subject: text(metadata["command"]) ?? text(metadata["filepath"]) ?? listed,
        sentence: (who, subject) => l10n.t("{0} asks to access files outside the folder: {1}", who, subject),
      };
    case "webfetch":
      return {
        title: l10n.t("Fetch a Web Page"),
        icon: "globe",
        subject: text(metadata["url"]) ?? listed,
        sentence: (who, subject) => l10n.t("{0} asks to fetch {1}", who, subject),
      };
    case "websearch":
    case "codesearch":
      return {
        title: l10n.t("Search the Web"),
        icon: "globe",
        subject: text(metadata["query"]) ?? listed,
        sentence: (who, subject) => l10n.t("{0} asks to search the web for: {1}", who, subject),
      };
    case "glob":
    case "grep":
    case "list":
      return {
        title: l10n.t("Search Files"),
        icon: "search",
        subject: listed,
        sentence: (who, subject) => l10n.t("{0} asks to search files for: {1}", who, subject),
      };
    case "task":
      return {
        title: l10n.t("Launch a Subagent"),
        icon: "hubot",
        subject: [text(metadata["subagent_type"]) ?? listed, text(metadata["description"])]
          .filter(Boolean)
          .join(": "),
        sentence: (who, subject) => l10n.t("{0} asks to launch the subagent {1}", who, subject),
      };
    case "skill":
      return {
        title: l10n.t("Use a Skill"),
        icon: "lightbulb",
        subject: listed,
        sentence: (who, subject) => l10n.t("{0} asks to use the skill {1}", who, subject),
      };
    case "doom_loop":
      return {
        title: l10n.t("Continue Repeating"),
        icon: "warning",
        subject: [text(metadata["tool"]) ?? listed, callInput(metadata["input"])].filter(Boolean).join(" "),
        sentence: (who, subject) =>
          l10n.t("{0} made the same call several times and asks to continue: {1}", who, subject),
      };
    default:
      return {
        title: l10n.t("Use a Tool"),
        icon: "tools",
        subject: patterns.every((pattern) => pattern === "*") ? permission : `${permission}: ${listed}`,
        sentence: (who, subject) => l10n.t("{0} asks to use the tool {1}", who, subject),
      };
  }
}

function files(patterns: readonly string[]): string {
  return patterns.map((pattern) => file(pattern) ?? pattern).join(", ");
}

/** A path as users know it: relative to the workspace if it is inside. */
function file(path: unknown): string | undefined {
  const known = text(path);
  if (known === undefined) return undefined;
  const relative = workspace.asRelativePath(known, false);
  if (relative !== known) return relative;
  // Outside a repository, the server sends paths relative to the root of the file system.
  const fromRoot = workspace.asRelativePath(`/${known}`, false);
  return fromRoot === `/${known}` ? known : fromRoot;
}

function callInput(input: unknown): string | undefined {
  return typeof input === "object" && input !== null ? JSON.stringify(input) : undefined;
}
