import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dirname, "../..");
const folder = join(repository, ".github/workflows");

/** Read as text: the checks concern single lines, and nothing else here needs a parser for YAML. */
const workflows = new Map(
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
);
const manifest = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as {
  readonly engines: { readonly vscode: string };
  readonly scripts: Readonly<Record<string, string>>;
};

describe("the workflows", () => {
  for (const [name, text] of workflows) {
    it(`${name} uses actions only at a commit, with the version beside it`, () => {
      const used = text.match(/uses:.*/g) ?? [];
      assert.ok(used.length > 0);
      for (const line of used) assert.match(line, /^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    });

    it(`${name} grants no permissions that a job does not ask for`, () => {
      assert.match(text, /^permissions:(?: \{\}|\n {2}contents: read)\n/m);
      const written = text.match(/^.*: write(?:-all)?$/gm) ?? [];
      assert.deepEqual(written, name === "release.yml" ? ["      contents: write"] : []);
      assert.doesNotMatch(text, /pull_request_target/);
    });

    it(`${name} keeps no credentials on disk, and puts no value of an event into a command`, () => {
      const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0;
      assert.equal(count(/persist-credentials: false/g), count(/uses: actions\/checkout@/g));
      for (const line of text.match(/run:.*/g) ?? []) assert.doesNotMatch(line, /\$\{\{/);
    });

    it(`${name} runs only scripts that exist`, () => {
      for (const [, script = ""] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
        assert.ok(script in manifest.scripts, script);
    });
  }

  it("run the lowest supported VS Code, and both tested OpenCode versions", () => {
    const text = workflows.get("ci.yml") ?? "";
    assert.ok(text.includes(`vscode: ["${manifest.engines.vscode.replace("^", "")}", stable]`));
    assert.ok(text.includes("npm run test:versions"));
  });
});
