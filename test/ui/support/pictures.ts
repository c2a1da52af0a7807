import type { Settings } from "../../vscode/host.ts";
import { picturesWanted, type Rectangle, type Workbench } from "./workbench.ts";

/** With these settings a window follows the system's theme, so that the theme can change while things are open. */
export const systemTheme: Settings = {
  "window.autoDetectColorScheme": true,
  "workbench.preferredDarkColorTheme": "Dark Modern",
  "workbench.preferredLightColorTheme": "Light Modern",
};

const CLASSES = { light: "vs", dark: "vs-dark" } as const;

/** Takes pictures of a window with {@link systemTheme} in the light and the dark theme, and leaves it dark. */
export async function takePictures(workbench: Workbench, name: string, clip?: Rectangle): Promise<void> {
  // Elsewhere, the mouse might bring up a hover.
  await workbench.page.mouse.move(0, 0);
  if (!picturesWanted) return;
  for (const colorScheme of ["light", "dark"] as const) {
    await workbench.page.emulateMedia({ colorScheme });
    await workbench.page.locator(`.monaco-workbench.${CLASSES[colorScheme]}`).waitFor();
    await workbench.screenshot(`${name}-${colorScheme}`, clip);
  }
}

/**
 * Takes a high-contrast picture of a window with {@link systemTheme}, and leaves it dark.
 * @param look called while high contrast is shown
 */
export async function takeHighContrastPicture(
  workbench: Workbench,
  name: string,
  look?: () => Promise<void>,
): Promise<void> {
  await takeContrastPicture(workbench, "dark", "hc-black", `${name}-hc`, { look });
}

/** Takes pictures of a window with {@link systemTheme} in all four kinds of theme, and leaves it dark. */
export async function takeAllPictures(workbench: Workbench, name: string, clip?: Rectangle): Promise<void> {
  await takePictures(workbench, name, clip);
  await takeContrastPicture(workbench, "dark", "hc-black", `${name}-hc`, { clip });
  await takeContrastPicture(workbench, "light", "hc-light", `${name}-hc-light`, { clip });
}

async function takeContrastPicture(
  workbench: Workbench,
  colorScheme: "dark" | "light",
  className: string,
  name: string,
  {
    clip,
    look,
  }: { readonly clip?: Rectangle | undefined; readonly look?: (() => Promise<void>) | undefined },
): Promise<void> {
  if (!picturesWanted && !look) return;
  await workbench.page.emulateMedia({ forcedColors: "active", colorScheme });
  await workbench.page.locator(`.monaco-workbench.${className}`).waitFor();
  await workbench.screenshot(name, clip);
  await look?.();
  await workbench.page.emulateMedia({ forcedColors: "none", colorScheme: "dark" });
  await workbench.page.locator(`.monaco-workbench.${CLASSES.dark}`).waitFor();
}
