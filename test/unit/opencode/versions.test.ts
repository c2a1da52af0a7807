import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConnectionError } from "../../../src/engine/connection.ts";
import { readVersion, requireSupported } from "../../../src/opencode/version-look.ts";
import {
  isUntested,
  MINIMUM_VERSION,
  supportOf,
  TESTED_VERSIONS,
  versionIn,
} from "../../../src/opencode/versions.ts";
import { tempDir } from "../../support/temp.ts";

const repository = join(import.meta.dirname, "../../..");

describe("OpenCode's versions", () => {
  for (const [output, version] of [
    ["1.18.33\n", "1.18.33"],
    ["opencode v2.3.2\n", "2.3.2"],
    ["opencode2 v2.0.1", "2.0.1"],
    ["a warning\nopencode v2.3.2\r\n", "2.3.2"],
    ["0.0.0-dev-202611\n", "0.0.0-dev-202611"],
    ["local\n", undefined],
    ["usage: 1.18.33 of something else", undefined],
    ["", undefined],
  ] as const)
    it(`reads ${version ?? "none"} in ${JSON.stringify(output)}`, () => {
      assert.equal(versionIn(output), version);
    });

  for (const [version, support] of [
    [MINIMUM_VERSION, "supported"],
    ["1.19.6", "supported"],
    ["1.18.14", "too-old"],
    ["1.17.20", "too-old"],
    ["0.0.55", "too-old"],
    ["2.0.0", "too-new"],
    ["2.3.2-beta.1", "too-new"],
    ["3.0.0", "too-new"],
    ["0.0.0-beta-17236", "unknown"],
    ["local", "unknown"],
    [undefined, "unknown"],
  ] as const)
    it(`${version ?? "none"} is ${support}`, () => {
      assert.equal(supportOf(version), support);
    });

  it("is asked of an executable before each start, as a version manager's file stays the same", async function () {
    if (process.platform === "win32") return this.skip();
    const folder = tempDir("shim");
    const [shim, version] = [join(folder, "opencode"), join(folder, "version")];
    writeFileSync(shim, `#!/bin/sh\ncat '${version}'\n`, { mode: 0o755 });
    writeFileSync(version, "1.18.33\n");
    assert.equal(await readVersion(shim, process.env), "1.18.33");
    await requireSupported(shim, process.env);
    writeFileSync(version, "opencode v2.3.2\n");
    await assert.rejects(
      requireSupported(shim, process.env),
      (error) => error instanceof ConnectionError && error.failure.code === "too-new",
    );
  });

  it("an executable that can't be run at the moment has none, and is asked again", async function () {
    // Only Linux refuses to run what is open for writing.
    if (process.platform !== "linux") return this.skip();
    const executable = join(tempDir(), "opencode");
    writeFileSync(executable, "#!/bin/sh\necho 1.18.33\n", { mode: 0o755 });
    const file = openSync(executable, "r+");
    try {
      assert.equal(await readVersion(executable, process.env), undefined);
    } finally {
      closeSync(file);
    }
    assert.equal(await readVersion(executable, process.env), "1.18.33");
  });

  it("only a later release line of 1.x is untested", () => {
    const untested = ["1.18.15", "1.18.99", "1.19.0", "1.20.3", "2.3.2", "local"].filter(isUntested);
    assert.deepEqual(untested, ["1.19.0", "1.20.3"]);
  });

  it("the tests run with the newest tested version, and the documents name it", () => {
    const read = (file: string): string => readFileSync(join(repository, file), "utf8");
    const lock = JSON.parse(read("package-lock.json")) as { packages: Record<string, { version?: string }> };
    assert.equal(lock.packages["node_modules/opencode-linux-x64"]?.version, TESTED_VERSIONS.newest);
    for (const file of ["docs/opencode-2.md", "package.nls.json", "package.nls.zh-cn.json", "README.md"])
      assert.ok(read(file).includes(TESTED_VERSIONS.newest), file);
    assert.ok(read("README.md").includes(TESTED_VERSIONS.lowest));
  });
});
