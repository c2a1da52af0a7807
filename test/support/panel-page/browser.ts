import { chromium, type Browser } from "playwright-core";
import { ensureChromium } from "../../vscode/ensure.ts";

/** Starts Chromium, after installing it if necessary and possible. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: ensureChromium(), args: ["--no-sandbox", "--disable-gpu"] });
}
