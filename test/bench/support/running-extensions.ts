import type { Workbench } from "../../ui/support/workbench.ts";

/** Opens the editor that lists what runs in the extension host, until all of these extensions were activated. */
export async function showRunningExtensions(
  { page, runCommand }: Workbench,
): Promise<void> {
}
