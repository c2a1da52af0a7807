import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Packages that say what their license is, but come without its text: their copyright, as their repositories say it. */
const COPYRIGHTS = {
  "@opencode-ai/sdk": "Copyright (c) 2025 opencode",
  "js-tiktoken": "Copyright (c) 2022 OpenAI, Shantanu Jain",
};

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`;

/** The notices of all packages that the bundles hold code of. Throws where a package has none. */
export function thirdPartyNotices(metafiles) {
  const files = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
    ),
  );
  const folders = new Set(files.filter((file) => file.includes("node_modules/")).map(packageOf));
  const notices = new Set([...folders].map(noticeOf).sort());
  const line = "\n\n" + "=".repeat(80) + "\n\n";
  return ["Async Agents for OpenCode includes code of these packages.", ...notices].join(line) + "\n";
}

/** The folder of the package that a file belongs to: a folder within one can have a manifest as well, but no name. */
function packageOf(file) {
  let folder = dirname(file);
  while (!existsSync(join(folder, "package.json")) || !manifestOf(folder).version) folder = dirname(folder);
  return folder;
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function noticeOf(folder) {
  const { name, version, license } = manifestOf(folder);
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (texts.length === 0) {
    if (license !== "MIT" || !COPYRIGHTS[name]) throw new Error(`${name} ${version} has no license text.`);
    texts.push(`MIT License\n\n${COPYRIGHTS[name]}\n\n${MIT}`);
  }
  return [`${name} ${version}\nLicense: ${license}`, ...texts].join("\n\n");
}
