/** Runs `test/host/*.test.ts` inside the extension host of a real VS Code. Optional argument: part of the titles. */
import "../support/noon.ts";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { endBackground } from "../support/background.ts";
import { repository, runInExtensionHost } from "../support/extension-host.ts";
import { modelUrlVariable } from "../support/model-client.ts";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { hostVariables } from "./variables.ts";

const bundles = join(repository, "out", "test", "host");
const home = hermeticHome();
const model = await startScriptedModel();
try {
  await bundle();
  await runInExtensionHost({
    tests: join(bundles, "index.cjs"),
    folder: tempDir("work"),
    settings: {
      "asyncagents.server.path": openCodeBinary(),
      // The end of one test's task would be among the messages that the next test looks at.
      "asyncagents.notifyUser": "never",
      // The editor saves by itself, while tests leave text unsaved.
      "files.autoSave": "off",
    },
    env: {
      ...hermeticEnv(home, modelConfig(model)),
      [modelUrlVariable]: model.url,
      [hostVariables.tests]: join(bundles, "tests.cjs"),
      [hostVariables.results]: join(repository, "test-results"),
      [hostVariables.grep]: process.argv[2],
    },
  });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await endBackground(home);
  await model.stop();
}

/** One bundle for the start in the extension host, and one with all test files. */
async function bundle(): Promise<void> {
  const directory = join(repository, "test", "host");
  const files = readdirSync(directory).filter((file) => file.endsWith(".test.ts"));
  const options: BuildOptions = {
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode", "mocha"],
    sourcemap: "inline",
    logLevel: "warning",
  };
  await build({
    ...options,
    entryPoints: [join(directory, "index.ts")],
    outfile: join(bundles, "index.cjs"),
  });
  await build({
    ...options,
    stdin: { contents: files.map((file) => `import "./${file}";`).join("\n"), resolveDir: directory },
    outfile: join(bundles, "tests.cjs"),
  });
}
