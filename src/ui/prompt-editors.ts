import * as vscode from "vscode";
import type { ContextKeys } from "./context-keys.ts";
import type { PromptTarget } from "./launch-plan.ts";
import { loadLater } from "./load-later.ts";

const TARGETS = "asyncagents.promptEditors";

/**
 * Untitled documents in which prompts are written. Their purposes are stored with the workspace, because VS Code
 * restores the documents after a reload.
 */
export class PromptEditors implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly targets: Map<string, PromptTarget>;
  /** The documents whose text is being submitted. */
  private readonly busy = new Set<string>();
  private readonly lensChanges = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.lensChanges.event;
  private readonly disposables: vscode.Disposable;

  constructor(
    private readonly state: vscode.Memento,
    private readonly keys: ContextKeys,
  ) {
    this.targets = new Map(Object.entries(state.get<Readonly<Record<string, PromptTarget>>>(TARGETS, {})));
    this.forgetClosed();
    if (this.targets.size > 0) this.changed();
    this.disposables = vscode.Disposable.from(
      this.lensChanges,
      vscode.languages.registerCodeLensProvider({ scheme: "untitled" }, this),
      vscode.workspace.onDidCloseTextDocument(() => this.forgetClosed()),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (closed.length > 0) this.forgetClosed();
      }),
    );
  }

  /** Opens a new prompt editor with this text, with the cursor where the user would continue. */
  async open(target: PromptTarget, text: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content: text });
    // The editor may restore the text of a document of this name that was closed a moment ago.
    if (document.getText() !== text) await setText(document, text);
    this.targets.set(document.uri.toString(), target);
    this.changed();
    // A quotation begins with an empty line, into which the prompt is written.
    const cursor = text.startsWith("\n") ? new vscode.Position(0, 0) : document.positionAt(text.length);
    await vscode.window.showTextDocument(document, {
      preview: false,
      selection: new vscode.Range(cursor, cursor),
    });
  }

  /** Undefined if the document isn't a prompt editor. */
  target(uri: vscode.Uri): PromptTarget | undefined {
    return this.targets.get(uri.toString());
  }

  /** Does nothing if the editor was closed in the meantime, because a new untitled document may have its address. */
  setTarget(uri: vscode.Uri, target: PromptTarget): void {
    if (!this.target(uri)) return;
    this.targets.set(uri.toString(), target);
    this.changed();
  }

  /**
   * Submits the text, and closes the document if the text was accepted and not changed in the meantime. Does nothing
   * while the same document is being submitted.
   */
  async submit(document: vscode.TextDocument, use: (text: string) => Promise<boolean>): Promise<void> {
    const uri = document.uri.toString();
    if (this.busy.has(uri)) return;
    this.busy.add(uri);
    try {
      const text = document.getText();
      if ((await use(text)) && document.getText() === text) await close(document);
    } finally {
      this.busy.delete(uri);
    }
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const target = this.target(document.uri);
    return target ? (await loadLater()).promptLenses(document, target) : [];
  }

  dispose(): void {
    this.disposables.dispose();
  }

  private forgetClosed(): void {
    const open = new Set(vscode.workspace.textDocuments.map(({ uri }) => uri.toString()));
    for (const { uri } of textTabs()) open.add(uri.toString());
    const closed = [...this.targets.keys()].filter((uri) => !open.has(uri));
    for (const uri of closed) this.targets.delete(uri);
    if (closed.length > 0) this.changed();
  }

  private changed(): void {
    const uris = [...this.targets.keys()];
    this.keys.set("promptEditors", uris);
    this.keys.set(
      "launchEditors",
      uris.filter((uri) => this.targets.get(uri)?.kind === "launch"),
    );
    void this.state.update(TARGETS, Object.fromEntries(this.targets));
    this.lensChanges.fire();
  }
}

/** Closes an untitled document without the prompt to save it, by emptying it first. */
async function close(document: vscode.TextDocument): Promise<void> {
  await setText(document, "");
  const tabs = textTabs().filter(({ uri }) => uri.toString() === document.uri.toString());
  await vscode.window.tabGroups.close(tabs.map(({ tab }) => tab));
}

function textTabs(): readonly { readonly tab: vscode.Tab; readonly uri: vscode.Uri }[] {
  return vscode.window.tabGroups.all
    .flatMap(({ tabs }) => tabs)
    .flatMap((tab) => (tab.input instanceof vscode.TabInputText ? [{ tab, uri: tab.input.uri }] : []));
}

/** Replaces the whole text of a document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}
