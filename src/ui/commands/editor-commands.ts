import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Task } from "../../engine/task.ts";
import { changeSubject } from "../editor/change-subject.ts";
import { fileSubject } from "../editor/file-subject.ts";
import {
  editorVariables,
  problemsIn,
  problemSubject,
  type Selected,
  selectionSubject,
} from "../editor/place-subjects.ts";
import type { Subject } from "../editor/subject.ts";
import { connectedFolder } from "../folders/require-folder.ts";
import type { Folders } from "../folders/folders.ts";
import { aside } from "../quick-input.ts";
import type { PromptContext, TaskContext } from "./command.ts";
import { launchAsking, launchTextAsking } from "./launch-wizard.ts";
import { namedPrompt, pickPrompt } from "./ask-prompt.ts";

/** What a task can be launched on. */
export type SubjectKind = "selection" | "file" | "problem" | "change";

/** Reads the subject from the arguments that a menu passes; without any, from the active editor. */
const READ: Readonly<Record<SubjectKind, (given: readonly unknown[], folders: Folders) => Promise<Subject>>> =
  {
    /** A `Location`; otherwise the selection. */
    selection: async ([place]) => selectionSubject(await selected(place)),
    /** One or more files or folders; otherwise the file in the active editor. */
    file: async ([uri, uris]) => {
      const given = [...urisIn(uris), ...urisIn(uri)];
      const active = vscode.window.activeTextEditor?.document.uri;
      return fileSubject(distinct(given.length > 0 || !active ? given : [active]));
    },
    /** The given problems of a file, or all of its problems; otherwise those at the cursor. */
    problem: async ([uri, problems]) => {
      if (!(uri instanceof vscode.Uri)) {
        const { document, range } = await selected(undefined);
        const here = problemsIn(document.uri, range);
        const line = document.lineAt(range.start).range;
        return problemSubject(document, here.length > 0 ? here : problemsIn(document.uri, line));
      }
      const document = await vscode.workspace.openTextDocument(uri);
      return problemSubject(document, problemsGiven(problems) ?? vscode.languages.getDiagnostics(uri));
    },
    /** Uncommitted changes: of the files of a source control row; otherwise of the whole repository. */
    change: async (given, folders) => {
      const edited = vscode.window.activeTextEditor?.document.uri;
      const places = [repositoryIn(given), edited, folders.current?.uri];
      return changeSubject(
        distinct(given.flatMap(urisIn)),
        places.filter((place) => place !== undefined),
      );
    },
  };

export const launchOnSelection = launchOn("selection");
export const launchOnFile = launchOn("file");
export const launchOnProblem = launchOn("problem");
export const launchOnChange = launchOn("change");

function launchOn(kind: SubjectKind) {
  return async (context: PromptContext, ...given: readonly unknown[]): Promise<Task | undefined> =>
    launchAsking(context, await readSubject(context, kind, given));
}

/** Reads the subject of a launch, and makes its folder the current one, so that the agent works there. */
export async function readSubject(
  { folders }: Pick<TaskContext, "folders">,
  kind: SubjectKind,
  given: readonly unknown[],
): Promise<Subject> {
  const [uri] = [...given.flatMap(urisIn), repositoryIn(given)];
  folders.use(uri && folders.at(uri));
  return READ[kind](given, folders);
}

/** Launches from a template: the named one, otherwise one that the user picks. */
export async function launchTemplate(context: PromptContext, name: unknown): Promise<Task | undefined> {
  await connectedFolder(context.folders);
  const { memory } = context;
  const variables = editorVariables();
  const title = vscode.l10n.t("Launch Task: Templates and Recent Prompts");
  const picked =
    typeof name === "string"
      ? namedPrompt(name, variables)
      : await aside(pickPrompt(memory, { title }, variables));
  if (!picked) return undefined;
  const { text, agent } = picked;
  return launchTextAsking(context, text, { agents: agent === undefined ? [] : [agent] });
}

/** The given place, otherwise the selection. */
async function selected(place: unknown): Promise<Selected> {
  if (place instanceof vscode.Location)
    return { document: await vscode.workspace.openTextDocument(place.uri), range: place.range };
  const editor = vscode.window.activeTextEditor;
  if (editor) return { document: editor.document, range: editor.selection };
  throw new Refusal("invalid-argument", sentence("Open a file in an editor, then try again."));
}

/** The files passed by a menu of the explorer or of source control. */
function urisIn(value: unknown): readonly vscode.Uri[] {
  if (value instanceof vscode.Uri) return [value];
  if (Array.isArray(value)) return value.flatMap(urisIn);
  if (typeof value !== "object" || value === null) return [];
  if (value instanceof vscode.Location) return [value.uri];
  if ("resourceUri" in value) return urisIn(value.resourceUri);
  return "resourceStates" in value ? urisIn(value.resourceStates) : [];
}

/** The root of the repository whose title menu was used. */
function repositoryIn([value]: readonly unknown[]): vscode.Uri | undefined {
  return typeof value === "object" &&
    value !== null &&
    "rootUri" in value &&
    value.rootUri instanceof vscode.Uri
    ? value.rootUri
    : undefined;
}

function distinct(uris: readonly vscode.Uri[]): readonly vscode.Uri[] {
  return [...new Map(uris.map((uri) => [uri.toString(), uri])).values()];
}

/** Undefined if no problems were given. */
function problemsGiven(value: unknown): readonly vscode.Diagnostic[] | undefined {
  if (value instanceof vscode.Diagnostic) return [value];
  if (!Array.isArray(value)) return undefined;
  return value.filter((each): each is vscode.Diagnostic => each instanceof vscode.Diagnostic);
}
