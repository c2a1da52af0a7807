import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { repository } from "../support/extension-host.ts";
import { installedExtension, packagedExtension } from "./support/extension.ts";

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }>
  >;
}

/** Code that the extension host reads, in kB: all of it, and what it reads before `activate` is called. */
const MAX_CODE = 250;
const MAX_CODE_AT_START = 25;

describe("the packaged extension", () => {
  const folder = (): string => {
    const extensions = installedExtension();
    const [name] = readdirSync(extensions).filter((each) => each.startsWith("async-agents."));
    return join(extensions, name ?? assert.fail());
  };
  const shipped = (name: string): string => readFileSync(join(folder(), name), "utf8");

  /** The folders of the packages that the bundles hold code of. */
  function bundledPackages(): readonly string[] {
    const metafiles = JSON.parse(
      readFileSync(join(repository, "dist", "metafiles.json"), "utf8"),
    ) as readonly Metafile[];
    const outputs = metafiles.flatMap((metafile) => Object.values(metafile.outputs));
    const files = outputs.flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
    );
    const folders = files.flatMap((file) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
    return [...new Set(folders)];
  }

  it("contains the notices of all packages whose code its bundles contain", function () {
    this.timeout(120_000);
    const notices = shipped("dist/ThirdPartyNotices.txt");
    const packages = bundledPackages().map((folder) => join(repository, folder));
    const names: string[] = [];
    for (const folder of packages) {
      const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
        readonly name: string;
        readonly version: string;
      };
      names.push(name);
      const start = notices.indexOf(`\n${name} ${version}\nLicense: `);
      assert.ok(start >= 0, `${name} ${version}`);
      const [notice = ""] = notices.slice(start).split(/\n={80}\n/);
      assert.match(notice, /copyright/i, name);
      for (const file of readdirSync(folder).filter((each) => /licen[cs]e|notice|copying/i.test(each)))
        assert.ok(notice.includes(readFileSync(join(folder, file), "utf8").trim()), `${name}: ${file}`);
    }
    // If the bundles' contents were not found, no notice would be missing.
    for (const name of ["markdown-it", "entities", "dompurify", "zod", "js-tiktoken", "@opencode-ai/sdk"])
      assert.ok(names.includes(name), name);
  });

  it("gives the extension host little code to read, and even less at the start", () => {
    const entry = "dist/extension.cjs";
    const chunks = readdirSync(join(folder(), "dist", "chunks")).map((name) => `dist/chunks/${name}`);
    const atStart = new Set([entry]);
    for (const file of atStart)
      for (const chunk of chunks)
        if (
          shipped(file)
            .match(/\}=require\("[^"]+"\)/g)
            ?.some((from) => from.endsWith(`/${basename(chunk)}")`))
        )
          atStart.add(chunk);
    const size = (files: Iterable<string>): number =>
      [...files].reduce((sum, file) => sum + shipped(file).length, 0) / 1000;
    assert.ok(atStart.size > 1 && atStart.size <= chunks.length);
    assert.ok(size(atStart) <= MAX_CODE_AT_START, `${size(atStart)} kB at the start`);
    assert.ok(size([entry, ...chunks]) <= MAX_CODE, `${size([entry, ...chunks])} kB in all`);
  });

  it("has a README without images and links by relative path", () => {
    assert.match(shipped("readme.md"), /^# Async Agents/);
    assert.deepEqual(shipped("readme.md").match(/\]\((?!https:|#).*?\)/g), null);
  });

  it("takes at most 2 MB", () => {
    assert.ok(statSync(packagedExtension()).size <= 2_000_000);
  });
});
