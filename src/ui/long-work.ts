import * as vscode from "vscode";

/** What takes longer is said to be going on, in milliseconds. */
const LONG_MS = 1_000;

/** Shows progress beside everything else if the work turns out to be long. */
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
