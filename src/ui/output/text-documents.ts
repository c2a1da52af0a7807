import * as vscode from "vscode";

const SCHEME = "asyncagents-text";

/** Long texts of tasks as read-only documents, each kept for as long as the editor has it open. */
export class TextDocuments implements vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registrations: vscode.Disposable;
  private count = 0;

  constructor() {
    this.registrations = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
        provideTextDocumentContent: (uri) => this.texts.get(uri.toString()),
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        // One whose language is changed is closed and opened again in the same moment.
        setImmediate(() => this.forgetClosed(document.uri));
      }),
    );
  }

  /** A text as a document that is not open yet; it is called like `file`, whose extension tells the language. */
  add(file: vscode.Uri, text: string): vscode.Uri {
    const uri = file.with({ scheme: SCHEME, authority: "", query: String(++this.count), fragment: "" });
    this.texts.set(uri.toString(), text);
    return uri;
  }

  /** `name` is what the tab shows; its extension tells the language. */
  async open(name: string, text: string): Promise<void> {
    const file = vscode.Uri.from({
      scheme: SCHEME,
      path: `/${name.replace(/[\\/\p{Cc}]+/gu, " ").slice(-100)}`,
    });
    await vscode.window.showTextDocument(this.add(file, text), { preview: true });
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
