import * as vscode from "vscode";
import { modelText } from "../engine/model-ref.ts";
import type { ContextKeys } from "./context-keys.ts";
import { type LaunchPlan, type PromptTarget, splitSections } from "./launch-plan.ts";
import { withoutIcons } from "./plain-text.ts";

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
  private readonly subscriptions: vscode.Disposable;

  constructor(
    private readonly state: vscode.Memento,
    private readonly keys: ContextKeys,
  ) {
    this.targets = new Map(Object.entries(state.get<Readonly<Record<string, PromptTarget>>>(TARGETS, {})));
    this.forgetClosed();
    if (this.targets.size > 0) this.changed();
    this.subscriptions = vscode.Disposable.from(
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

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const target = this.target(document.uri);
    return target ? promptLenses(document, target) : [];
  }

  dispose(): void {
    this.subscriptions.dispose();
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
    this.keys.set("asyncagents.promptEditors", uris);
    this.keys.set(
      "asyncagents.launchEditors",
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

/** The actions above a prompt, as code lenses. */
function promptLenses(document: vscode.TextDocument, target: PromptTarget): vscode.CodeLens[] {
  const { uri } = document;
  const lens = (title: string, command: string, ...args: readonly unknown[]): vscode.CodeLens =>
    new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command, arguments: [uri, ...args] });
  if (target.kind === "resume") {
    const title = vscode.l10n.t('Resume "{0}" (Ctrl+Enter)', withoutIcons(target.description));
    return [lens(title, "asyncagents.launchPrompt")];
  }
  const { plan } = target;
  const sections = splitSections(document.getText()).length;
  const lenses = [
    lens(launchTitle(plan, sections), "asyncagents.launchPrompt"),
    lens(vscode.l10n.t("Options: {0}", choices(plan)), "asyncagents.promptOptions"),
  ];
  if (sections < 2) return lenses;
  const other = plan.splits
    ? vscode.l10n.t("As One Prompt")
    : vscode.l10n.t("As {0} Prompts, Split at ---", sections);
  return [...lenses, lens(other, "_asyncagents.splitPrompt", !plan.splits)];
}

function launchTitle({ agents, fork, splits }: LaunchPlan, sections: number): string {
  const count = (splits ? Math.max(sections, 1) : 1) * Math.max(agents.length, 1);
  if (fork) return vscode.l10n.t("Review the Fork (Ctrl+Enter)");
  return count === 1
    ? vscode.l10n.t("Launch Task (Ctrl+Enter)")
    : vscode.l10n.t("Launch {0} Tasks (Ctrl+Enter)", count);
}

function choices({ agents, model, splits, subject, leavesOutSubject }: LaunchPlan): string {
  return [
    agents.length > 0 ? agents.join(", ") : vscode.l10n.t("select agents"),
    modelText(model),
    subject && !leavesOutSubject ? vscode.l10n.t("with {0}", withoutIcons(subject.title)) : "",
    splits ? vscode.l10n.t("a task for each section between lines of ---") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Replaces the whole text of a document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}
