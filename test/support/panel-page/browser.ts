import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { chromium, type Browser } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Starts the Chromium named by `CHROMIUM_PATH`, else one on the PATH. */
export function launchChromium(): Promise<Browser> {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const found = folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
  const executablePath = process.env["CHROMIUM_PATH"] ?? found;
  if (executablePath === undefined)
    throw new Error("No Chromium on the PATH: install one or set CHROMIUM_PATH.");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}
