import type * as vscode from "vscode";

/** The person wants the step before. */
export const BACK = Symbol("back");

/**
 * Shows an input until `listen` finishes it with a result or fails it with an error, the person leaves, or `over` says
 * that it has no more use. Undefined: it has no result.
 */
export function showInput<R>(
  input: vscode.QuickInput,
  listen: (finish: (result: R) => void, fail: (error: unknown) => void) => void,
  over?: AbortSignal,
): Promise<R | undefined> {
  return new Promise((resolve, reject) => {
    let result: R | undefined;
    const close = (): void => input.hide();
    // What someone else does meanwhile must not take the question away.
    input.ignoreFocusOut = true;
    listen(
      (given) => {
        result = given;
        close();
      },
      (error) => {
        reject(error instanceof Error ? error : new Error(String(error)));
        close();
      },
    );
    input.onDidHide(() => {
      over?.removeEventListener("abort", close);
      input.dispose();
      resolve(result);
    });
    over?.addEventListener("abort", close);
    input.show();
    if (over?.aborted) close();
  });
}
