import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { documentText } from "./document-text.ts";
import { placeOf } from "./place.ts";
import type { Subject } from "./subject.ts";

/** Lines that are shown before and after a problem. */
const LINES_AROUND = 10;
const SEVERITIES = ["error", "warning", "information", "hint"] as const;

/** Problems of one file, with the lines around them. Throws a {@link Refusal} where there are none. */
export function problemSubject(
  document: vscode.TextDocument,
  problems: readonly vscode.Diagnostic[],
): Subject {
  const { uri } = document;
  const [first] = problems;
  if (!first) throw new Refusal("invalid-argument", sentence("There is no problem in {0}.", placeOf(uri)));
  const range = problems.reduce((all, each) => all.union(each.range), first.range);
  const around = new vscode.Range(
    Math.max(range.start.line - LINES_AROUND, 0),
    0,
    Math.min(range.end.line + LINES_AROUND, document.lineCount - 1) + 1,
    0,
  );
  const { text, files, note } = documentText(document, around);
  const lines = problems.map((each) => problemLine(uri, each)).join("\n");
  const place = placeOf(uri, { first: first.range.start.line + 1, last: first.range.start.line + 1 });
  return {
    title:
      problems.length === 1
        ? vscode.l10n.t("the problem in {0}", place)
        : vscode.l10n.t("{0} problems in {1}", problems.length, placeOf(uri)),
    text: files.length > 0 ? lines : `${lines}\n\n${text}`,
    files,
    note,
    variables: { file: placeOf(uri), problem: lines },
  };
}

/** The problems that touch a place; at an empty one those around it. */
export function problemsIn(uri: vscode.Uri, range: vscode.Range): readonly vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((each) => each.range.intersection(range) !== undefined);
}

/** As compilers write them: `src/login.ts:3:5: error ts(2322): …`. */
export function problemLine(uri: vscode.Uri, problem: vscode.Diagnostic): string {
  const { range, severity, source = "", message } = problem;
  const { line, character } = range.start;
  const code = typeof problem.code === "object" ? problem.code.value : problem.code;
  const origin = code === undefined ? source : `${source}(${code})`;
  const kind = [SEVERITIES[severity], origin].filter(Boolean).join(" ");
  return `${placeOf(uri)}:${line + 1}:${character + 1}: ${kind}: ${message}`;
}
