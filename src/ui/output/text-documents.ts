import * as vscode from "vscode";
import { title } from "../plain-text.ts";

const SCHEME = "asyncagents-text";

/** Long texts of tasks as read-only documents, each kept while it is open in the editor. */
export class TextDocuments implements vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registrations: vscode.Disposable;
  private count = 0;

  constructor() {
    this.registrations = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
        provideTextDocumentContent: (uri) =>
          this.texts.get(uri.toString()) ??
          vscode.l10n.t("This text is no longer available. Open it again from where you opened it before."),
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        // A document whose language changes is closed and reopened at once.
        setImmediate(() => this.forgetClosed(document.uri));
      }),
    );
  }

  /** `name` is the title of the tab; its extension determines the language. */
  async open(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      path: `/${title(name.replace(/[\\/]+/g, " ")).slice(-100)}`,
      query: String(++this.count),
    });
    this.texts.set(uri.toString(), text);
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  private forgetClosed(uri: vscode.Uri): void {
    const name = uri.toString();
    if (!vscode.workspace.textDocuments.some((open) => open.uri.toString() === name)) this.texts.delete(name);
  }

  dispose(): void {
    this.registrations.dispose();
    this.texts.clear();
  }
}
