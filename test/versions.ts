/**
 * `npm run test:versions`: the part of the server's tests in which versions of OpenCode have differed, with the lowest
 * and the newest tested one. `npm run test:versions -- 1.18.20` runs them with that version.
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { TESTED_VERSIONS } from "../src/opencode/versions.ts";
import { openCodeBinary, openCodeIn } from "./support/opencode.ts";

const FILES = ["agent-server", "agent-fork", "lifecycle", "notices", "queue", "recovery", "resume", "steer"];
// On Windows, npm and npx are scripts, which need a shell; no argument needs quoting.
const shell = process.platform === "win32";

const chosen = process.argv.slice(2);
for (const version of chosen.length > 0 ? chosen : Object.values(TESTED_VERSIONS)) {
  console.log(`OpenCode ${version}`);
  const { status } = spawnSync(
    "npx",
    [
      ..."mocha --import=tsx --require test/support/ends.ts --timeout 60000".split(" "),
      ...FILES.map((name) => `test/server/${name}.test.ts`),
    ],
    { stdio: "inherit", shell, env: { ...process.env, TEST_OPENCODE: executableOf(version) } },
  );
  if (status !== 0) process.exitCode = 1;
}

/** The executable of a version. What is not among the dependencies is installed next to them. */
function executableOf(version: string): string {
  if (version === TESTED_VERSIONS.newest) return openCodeBinary();
  const folder = resolve("node_modules", ".cache", `opencode-${version}`);
  const install = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
  const installed = (): string | undefined => {
    const binary = openCodeIn(folder);
    // Otherwise it is one of the dependencies.
    return binary?.startsWith(folder) ? binary : undefined;
  };
  if (!installed()) spawnSync("npm", [...install, `opencode-ai@${version}`], { stdio: "inherit", shell });
  const binary = installed();
  if (binary === undefined) throw new Error(`OpenCode ${version} could not be installed in ${folder}.`);
  return binary;
}
