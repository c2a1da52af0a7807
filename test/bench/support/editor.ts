import type { Workbench } from "../../ui/support/workbench.ts";

/** A window tall enough for {@link activationTime} to see all rows of its list. */
export const tallViewport = { width: 1_280, height: 2_400 };

/** Milliseconds that VS Code reports for loading an extension's code and calling its `activate()`. */
export async function activationTime(workbench: Workbench, name: RegExp): Promise<number> {
  const rows = workbench.page.locator(".runtime-extensions-editor .monaco-list-row");
  if ((await rows.count()) === 0) await workbench.runCommand("Developer: Show Running Extensions");
  const time = rows.filter({ hasText: name }).locator(".activation-time", { hasText: /\d+ms/ });
  await time.waitFor({ timeout: 60_000 });
  return Number(/(\d+)ms/.exec(await time.innerText())?.[1]);
}

/** The name under which VS Code lists the extension under test. */
export const ourName = /Async Agents for OpenCode|opencode-async-agents/;
