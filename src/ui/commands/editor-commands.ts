import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Task } from "../../engine/task.ts";
import { changeSubject } from "../editor/change-subject.ts";
import { fileSubject } from "../editor/file-subject.ts";
import { problemSubject, problemsIn } from "../editor/problem-subject.ts";
import { editorVariables, selectionSubject, type Selected } from "../editor/selection-subject.ts";
import type { Subject } from "../editor/subject.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import { showingErrors } from "../human-error.ts";
import { BACK } from "../quick-input.ts";
import { hasPrompt, type Command, type CommandContext } from "./command.ts";
import { launchTask, readArguments } from "./launch.ts";
import { launchAsking, launchTextAsking } from "./launch-flow.ts";
import { namedPrompt, pickPrompt } from "./pick-prompt.ts";

/*
 * Menus hand these commands what they are about, as programs do. A program that gives a prompt as well, in an object like
 * that of `asyncagents.launch`, is asked nothing and gets the rejection.
 */

/** About a `Location`, else what is selected in the active editor. */
export const launchOnSelection: Command = {
  run: (context, ...args) =>
    launchOn(context, args, async ([place]) => selectionSubject(await selected(place))),
};

/** About a file or folder, or several, else the file that is edited. */
export const launchOnFile: Command = {
  run: (context, ...args) =>
    launchOn(context, args, ([uri, uris]) => {
      const given = [...urisIn(uris), ...urisIn(uri)];
      const active = vscode.window.activeTextEditor?.document.uri;
      return fileSubject(distinct(given.length > 0 || !active ? given : [active]));
    }),
};

/** About these problems of a file, or all of it; else those at the cursor. */
export const launchOnProblem: Command = {
  run: (context, ...args) =>
    launchOn(context, args, async ([uri, problems]) => {
      if (!(uri instanceof vscode.Uri)) {
        const { document, range } = await selected(undefined);
        const here = problemsIn(document.uri, range);
        const line = document.lineAt(range.start).range;
        return problemSubject(document, here.length > 0 ? here : problemsIn(document.uri, line));
      }
      const document = await vscode.workspace.openTextDocument(uri);
      return problemSubject(document, problemsGiven(problems) ?? vscode.languages.getDiagnostics(uri));
    }),
};

/** About what differs from the last commit: in the files of a row of source control, else in all of the repository. */
export const launchOnChange: Command = {
  run: (context, ...args) =>
    launchOn(context, args, (given) => {
      const edited = vscode.window.activeTextEditor?.document.uri;
      const places = [repositoryIn(given), edited, context.folders.current?.uri];
      return changeSubject(
        distinct(given.flatMap(urisIn)),
        places.filter((place) => place !== undefined),
      );
    }),
};

/** Begins with a template: the one of this name, else one that is chosen. */
export const launchTemplate: Command = {
  async run(context, name) {
    await connectedFolder(context.folders);
    const { memory } = context;
    const variables = editorVariables();
    const title = vscode.l10n.t("Launch Task: Templates and Recent Prompts");
    const picked =
      typeof name === "string"
        ? namedPrompt(name, variables)
        : await pickPrompt(memory, { title }, variables);
    if (!picked || picked === BACK) return undefined;
    const { text, agent } = picked;
    return launchTextAsking(context, text, { agents: agent === undefined ? [] : [agent], canMove: true });
  },
};

async function launchOn(
  context: CommandContext,
  args: readonly unknown[],
  read: (given: readonly unknown[]) => Promise<Subject>,
): Promise<Task | undefined> {
  const options = args.find(hasPrompt);
  const given = args.filter((each) => each !== options);
  const [uri] = [...given.flatMap(urisIn), repositoryIn(given)];
  // An agent works in the folder of what it is launched on.
  context.folders.use(uri && context.folders.at(uri));
  if (options) return launchTask(context, readArguments(options), await read(given));
  return showingErrors(context.logger, async () => launchAsking(context, await read(given)));
}

/** What a program names, else what is selected. */
async function selected(place: unknown): Promise<Selected> {
  if (place instanceof vscode.Location)
    return { document: await vscode.workspace.openTextDocument(place.uri), range: place.range };
  const editor = vscode.window.activeTextEditor;
  if (editor) return { document: editor.document, range: editor.selection };
  throw new Refusal("invalid-argument", sentence("Open a file in an editor, then try again."));
}

/** The files that a menu hands over, of the explorer or of source control. */
function urisIn(value: unknown): readonly vscode.Uri[] {
  if (value instanceof vscode.Uri) return [value];
  if (Array.isArray(value)) return value.flatMap(urisIn);
  if (typeof value !== "object" || value === null) return [];
  if (value instanceof vscode.Location) return [value.uri];
  if ("resourceUri" in value) return urisIn(value.resourceUri);
  return "resourceStates" in value ? urisIn(value.resourceStates) : [];
}

/** The folder of the repository whose title's menu it is. */
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

/** Undefined: none were given. */
function problemsGiven(value: unknown): readonly vscode.Diagnostic[] | undefined {
  if (value instanceof vscode.Diagnostic) return [value];
  if (!Array.isArray(value)) return undefined;
  return value.filter((each): each is vscode.Diagnostic => each instanceof vscode.Diagnostic);
}
