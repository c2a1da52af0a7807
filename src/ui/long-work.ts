import * as vscode from "vscode";

/** Work that takes longer than this shows progress, in milliseconds. */
const LONG_MS = 1_000;

/** Shows a progress notification if the work takes long. */
export async function showIfLong<T>(title: string, work: Promise<T>): Promise<T> {
  const ended = work.then(
    () => undefined,
    () => undefined,
  );
  const options = { location: vscode.ProgressLocation.Notification, title };
  const timer = setTimeout(() => void vscode.window.withProgress(options, () => ended), LONG_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
