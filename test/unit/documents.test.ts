import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const repository = join(import.meta.dirname, "../..");
/** The names of the source files, without their folders. */
const sources = new Set(
  readdirSync(join(repository, "src"), { recursive: true, encoding: "utf8" }).map((path) => basename(path)),
);

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
      const names = [...text.matchAll(/`([\w-]+\.ts)`/g)].map(([, name = ""]) => name);
      assert.deepEqual(
        names.filter((name) => !sources.has(name)),
        [],
      );
    });
});
