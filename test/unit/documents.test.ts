import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dirname, "../..");

describe("The documents for contributors", () => {
  for (const document of [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "openspec/project.md",
    "docs/performance.md",
    "docs/reliability.md",
    "docs/security.md",
  ])
    it(`${document} names files that exist`, () => {
      const text = readFileSync(join(repository, document), "utf8");
      const named = [...text.matchAll(/`((?:src|test|openspec)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
      assert.deepEqual(
        named.filter((path) => !existsSync(join(repository, path))),
        [],
      );
      if (document === "ARCHITECTURE.md") assert.ok(named.length > 20);
    });
});
