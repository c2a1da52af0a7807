/**
 * `npm run record -- /path/to/opencode`: starts that OpenCode with a home of its own and a scripted model, and records
 * how it answers and what its events say in a few turns, also when it is killed. `npm run record -- http://127.0.0.1:49374`
 * records a running server, with its model, in new sessions of a new folder; OPENCODE_PASSWORD or OPENCODE_SERVER_PASSWORD holds
 * its password. Passwords, keys and the paths of folders are replaced.
 */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startOpenCode } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { Recorder, type Target } from "./recorder.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: "string", default: "test-results/opencode-recording.jsonl" } },
});
const [what, ...more] = positionals;
const isUrl = what !== undefined && /^https?:\/\//.test(what);
if (what === undefined || more.length > 0 || !(isUrl || existsSync(what))) {
  console.error(
    "Usage: npm run record -- <address of a server | path of an opencode executable> [--out FILE]",
  );
  process.exit(2);
}
const file = resolve(values.out);
mkdirSync(dirname(file), { recursive: true });
rmSync(file, { force: true });
const options = { file, turnMs: 60_000, crashMs: 30_000 };

if (isUrl) {
  const password = process.env["OPENCODE_PASSWORD"] ?? process.env["OPENCODE_SERVER_PASSWORD"];
  await record({ url: what.replace(/\/$/, ""), password, directory: tempDir("work") });
} else {
  process.env["TEST_OPENCODE"] = resolve(what);
  const model = await startScriptedModel();
  const server = await startOpenCode({ model });
  const { url, password, directory } = server;
  const crash = async (): Promise<void> => {
    await server.kill();
    await server.restart();
  };
  await record({ url, password, directory, crash });
  await server.stop();
  await model.stop();
}
console.log(`Recorded in ${file}. Read it before you share it.`);

function record(target: Target): Promise<void> {
  return new Recorder(target, options).record();
}
