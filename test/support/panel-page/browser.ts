import { chromium, type Browser } from "playwright-core";
import { ensureChromium } from "../../vscode/ensure.ts";

/** Starts Chromium, installed first where it is missing and can be. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: ensureChromium(), args: ["--no-sandbox", "--disable-gpu"] });
}
