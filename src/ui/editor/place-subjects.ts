import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Variables } from "../templates/template.ts";
import { documentText, lengthOf, linesOf, placeOf, QUOTE_LENGTH, titleOf } from "./place.ts";
import { codeSpan, fenced } from "./quotation.ts";
import type { Subject } from "./subject.ts";

/** A place in a document. */
export interface Selected {
  readonly document: vscode.TextDocument;
  readonly range: vscode.Range;
}

/** The selection as a subject. Throws a {@link Refusal} if it is empty. */
export function selectionSubject({ document, range }: Selected): Subject {
  if (range.isEmpty)
    throw new Refusal("invalid-argument", sentence("Select some text in the editor, then try again."));
  const { text, files, note } = documentText(document, range);
  // The server reads whole lines, so a part of a line is quoted in the prompt.
  const words = files.length > 0 && range.isSingleLine ? document.getText(range) : "";
  const isPart = words.trim() !== "" && words.trim() !== document.lineAt(range.start.line).text.trim();
  return {
    title: titleOf(document.uri, linesOf(range)),
    text: isPart && words.length <= QUOTE_LENGTH ? `${text}: ${codeSpan(words)}` : text,
    files,
    note,
    variables: variablesOf({ document, range }),
  };
}

/** The values of the template variables at a place. */
function variablesOf({ document, range }: Selected): Variables {
  const { uri, languageId } = document;
  const problems = problemsIn(uri, range);
  const isLong = lengthOf(document, range) > QUOTE_LENGTH;
  const selected = isLong ? placeOf(uri, linesOf(range)) : document.getText(range);
  const selection = isLong || range.isSingleLine ? selected : `\n${fenced(selected, languageId)}\n`;
  return {
    file: placeOf(uri),
    ...(range.isEmpty ? {} : { selection }),
    ...(problems.length > 0 && { problem: problemLines(uri, problems) }),
  };
}

/** The values of the template variables in the active editor. */
export function editorVariables(): Variables {
  const editor = vscode.window.activeTextEditor;
  return editor ? variablesOf({ document: editor.document, range: editor.selection }) : {};
}

/** Lines of context shown before and after a problem. */
const LINES_AROUND = 10;
/** The number of problems that a prompt names; the agent finds the others. */
const NAMED_PROBLEMS = 100;
const SEVERITIES = ["error", "warning", "information", "hint"] as const;

/** Problems of one file as a subject, with the lines around them. Throws a {@link Refusal} if there are none. */
export function problemSubject(
  document: vscode.TextDocument,
  problems: readonly vscode.Diagnostic[],
): Subject {
  const { uri } = document;
  const [first] = problems;
  if (!first) throw new Refusal("invalid-argument", sentence("No problems in {0}.", placeOf(uri)));
  const range = problems.reduce((all, each) => all.union(each.range), first.range);
  const around = new vscode.Range(
    Math.max(range.start.line - LINES_AROUND, 0),
    0,
    Math.min(range.end.line + LINES_AROUND, document.lineCount - 1) + 1,
    0,
  );
  const { text, files, note } = documentText(document, around);
  const lines = problemLines(uri, problems);
  const place = titleOf(uri, { first: first.range.start.line + 1, last: first.range.start.line + 1 });
  return {
    title:
      problems.length === 1
        ? vscode.l10n.t("the problem in {0}", place)
        : vscode.l10n.t("{0} problems in {1}", problems.length, titleOf(uri)),
    text: files.length > 0 ? lines : `${lines}\n\n${text}`,
    files,
    note,
    variables: { file: placeOf(uri), problem: lines },
  };
}

/** The problems that intersect a range; for an empty range, those at its position. */
export function problemsIn(uri: vscode.Uri, range: vscode.Range): readonly vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((each) => each.range.intersection(range) !== undefined);
}

/** One problem per line, formatted as by compilers: `src/login.ts:3:5: error ts(2322): …`. */
function problemLines(uri: vscode.Uri, problems: readonly vscode.Diagnostic[]): string {
  const lines = problems.slice(0, NAMED_PROBLEMS).map((each) => problemLine(uri, each));
  const others = problems.length - lines.length;
  return [...lines, ...(others > 0 ? [`… and ${others} more problems`] : [])].join("\n");
}

function problemLine(uri: vscode.Uri, problem: vscode.Diagnostic): string {
  const { range, severity, source = "", message } = problem;
  const { line, character } = range.start;
  const code = typeof problem.code === "object" ? problem.code.value : problem.code;
  const origin = code === undefined ? source : `${source}(${code})`;
  const kind = [SEVERITIES[severity], origin].filter(Boolean).join(" ");
  return `${placeOf(uri)}:${line + 1}:${character + 1}: ${kind}: ${message}`;
}
