import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { Refusal } from "../../../src/engine/errors.ts";
import { configFiles } from "../../../src/opencode/config-file.ts";
import { PluginConfig } from "../../../src/opencode/plugin-config.ts";
import { tempDir } from "../../support/temp.ts";

const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

describe("the files of OpenCode's configuration", () => {
  let directory: string;
  let home: string;
  let plugin: PluginConfig;

  beforeEach(() => {
    directory = tempDir("work");
    home = tempDir("home");
    const stateFolder = join(tempDir("state"), "state");
    const bundle = join(tempDir("ext"), "opencode-plugin.js");
    writeFileSync(bundle, "export default {};");
    plugin = new PluginConfig({ bundle, stateFolder, places: { directory, env: {}, home }, logger });
  });

  const write = (path: string, text: string | Buffer): string => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  const read = (path: string): string => readFileSync(path, "utf8");
  const run = async (
    action: "install" | "remove",
    scope: "project" | "user" = "project",
  ): Promise<string> => {
    const change = (await plugin.plan(action, scope)) ?? assert.fail("there is no file");
    await plugin.apply(change);
    return change.path;
  };
  const refusal = async (work: Promise<unknown>, message: RegExp): Promise<void> =>
    assert.rejects(work, (error) => error instanceof Refusal && message.test(error.message));

  it("of a folder: the existing one, else a new one", async () => {
    const path = await run("install");
    assert.equal(path, join(directory, "opencode.json"));
    assert.deepEqual(JSON.parse(read(path)), {
      $schema: "https://opencode.ai/config.json",
      plugin: [JSON.parse(plugin.entry)],
    });
    assert.deepEqual(readdirSync(directory), ["opencode.json"]);
    rmSync(path);
    const hidden = write(join(directory, ".opencode", "opencode.jsonc"), "{}");
    assert.equal(await run("install"), hidden);
    rmSync(hidden);
    const jsonc = write(join(directory, "opencode.jsonc"), "{}");
    assert.equal(await run("install"), jsonc);
  });

  it("of the user: the same as OpenCode's", () => {
    const files = (env: Record<string, string>): readonly string[] =>
      configFiles("user", { directory, env, home });
    assert.deepEqual(files({}), [
      join(home, ".config", "opencode", "opencode.jsonc"),
      join(home, ".config", "opencode", "opencode.json"),
    ]);
    assert.equal(files({ XDG_CONFIG_HOME: "relative" })[0], files({})[0]);
    assert.equal(
      files({ XDG_CONFIG_HOME: tempDir() })[0]?.endsWith(join("opencode", "opencode.jsonc")),
      true,
    );
    assert.deepEqual(files({ OPENCODE_CONFIG: "my.json" }), [join(directory, "my.json")]);
  });

  it("of the user: missing folders are created", async () => {
    const path = await run("install", "user");
    assert.equal(path, join(home, ".config", "opencode", "opencode.jsonc"));
    assert.match(read(path), /opencode-plugin\.js/);
  });

  it("installing copies the plugin to the place that the entry names", async () => {
    await run("install");
    const [[url]] = JSON.parse(`[${plugin.entry}]`) as [[string]];
    assert.equal(read(new URL(url).pathname), "export default {};");
  });

  it("installing twice changes nothing; removing restores the exact text", async () => {
    const text =
      '\uFEFF{\r\n\t// what I like\r\n\t"model": "a/b", /* this */\r\n\t"plugin": [\r\n\t\t"x",\r\n\t],\r\n}\r\n';
    const path = write(join(directory, "opencode.json"), text);
    await run("install");
    const installed = read(path);
    assert.ok(installed.startsWith("\uFEFF{\r\n\t// what I like\r\n"));
    assert.equal(installed.replace(`\t\t${plugin.entry},\r\n`, ""), text);
    const again = await plugin.plan("install", "project");
    assert.equal(again?.after, again?.before);
    await run("remove");
    assert.equal(read(path), text);
    const gone = await plugin.plan("remove", "project");
    assert.equal(gone?.after, gone?.before);
  });

  it("removing takes the entry out of the file that has it, and creates no file", async () => {
    assert.equal(await plugin.plan("remove", "project"), undefined);
    const jsonc = write(join(directory, "opencode.jsonc"), "{}");
    await run("install");
    const json = write(join(directory, "opencode.json"), "{}");
    assert.equal((await plugin.plan("install", "project"))?.path, jsonc);
    assert.equal(await run("remove"), jsonc);
    assert.equal(read(json), "{}");
    assert.doesNotMatch(read(jsonc), /plugin/);
  });

  it("a link stays a link, and a file keeps its mode", async () => {
    const target = write(join(tempDir("dotfiles"), "config.json"), "{}");
    chmodSync(target, 0o640);
    symlinkSync(target, join(directory, "opencode.json"));
    assert.equal(await run("install"), target);
    assert.ok(lstatSync(join(directory, "opencode.json")).isSymbolicLink());
    assert.match(read(target), /opencode-plugin\.js/);
    if (process.platform !== "win32") assert.equal(statSync(target).mode & 0o777, 0o640);
  });

  /** A file of another owner, as far as this user can make one: the superuser can, others can change the group. */
  function foreign(): { path: string; owner: readonly number[] } | undefined {
    const path = write(join(directory, "opencode.json"), "{}");
    const { uid, gid } = statSync(path);
    const group = process.getgroups?.().find((one) => one !== gid);
    const owner = uid === 0 ? [12_345, 23_456] : [uid, group ?? gid];
    if (process.platform === "win32" || (uid !== 0 && group === undefined)) return undefined;
    chownSync(path, owner[0] ?? uid, owner[1] ?? gid);
    return { path, owner };
  }

  it("a file keeps its owner and group", async function () {
    const { path, owner } = foreign() ?? this.skip();
    await run("install");
    assert.match(read(path), /opencode-plugin\.js/);
    const { uid, gid } = statSync(path);
    assert.deepEqual([uid, gid], owner);
  });

  it("a file that can't keep its owner and group is left alone, without leftovers", async function () {
    const { path, owner } = foreign() ?? this.skip();
    const { chown } = fs;
    fs.chown = () => Promise.reject(Object.assign(new Error("EPERM"), { code: "EPERM" }));
    syncBuiltinESMExports();
    try {
      await refusal(run("install"), /opencode\.json belongs to another user or group/);
    } finally {
      Object.assign(fs, { chown });
      syncBuiltinESMExports();
    }
    assert.equal(read(path), "{}");
    const { uid, gid } = statSync(path);
    assert.deepEqual([uid, gid], owner);
    assert.deepEqual(readdirSync(directory), ["opencode.json"]);
  });

  it("what is written to a file that others can't read can't be read by them in between", async function () {
    if (process.platform === "win32") this.skip();
    const path = write(
      join(directory, "opencode.json"),
      '{ "provider": { "a": { "options": { "apiKey": "k" } } } }',
    );
    chmodSync(path, 0o600);
    const { chmod } = fs;
    const umask = process.umask(0o022);
    let drafted: number | undefined;
    fs.chmod = (file, mode) => {
      drafted = statSync(file).mode & 0o777;
      return chmod(file, mode);
    };
    syncBuiltinESMExports();
    try {
      await run("install");
    } finally {
      process.umask(umask);
      Object.assign(fs, { chmod });
      syncBuiltinESMExports();
    }
    assert.equal(drafted, 0o600);
    assert.match(read(path), /opencode-plugin\.js/);
  });

  it("an unusable file is refused with its path", async () => {
    const path = join(directory, "opencode.json");
    const cases: readonly (readonly [make: () => void, message: RegExp])[] = [
      [() => write(path, '{ "a": }'), /opencode\.json isn't valid JSON \(line 1/],
      [() => write(path, '{ "plugin": true }'), /"plugin" in .*opencode\.json isn't a list/],
      [() => write(path, `{ "a": ${"[".repeat(200_000)} }`), /opencode\.json is nested too deeply/],
      [() => write(path, Buffer.from([0x7b, 0xff, 0x7d])), /isn't UTF-8/],
      [() => mkdirSync(path), /Can't read .* \(EISDIR\)/],
      [() => symlinkSync(join(directory, "nowhere"), path), /is a broken link/],
      [() => symlinkSync(path, path), /Can't read .* \(ELOOP\)/],
    ];
    for (const [make, message] of cases) {
      make();
      await refusal(plugin.plan("install", "project"), message);
      rmSync(path, { recursive: true });
    }
  });

  it("a file that changed after the preview is left alone", async () => {
    const path = write(join(directory, "opencode.json"), "{}");
    const change = (await plugin.plan("install", "project")) ?? assert.fail();
    write(path, '{ "model": "a/b" }');
    await refusal(plugin.apply(change), /changed in the meantime/);
    assert.equal(read(path), '{ "model": "a/b" }');
    rmSync(path);
    await refusal(plugin.apply(change), /changed in the meantime/);
    assert.ok(!existsSync(path));
  });

  it("a file that cannot be written is left alone, without leftovers", async function () {
    // The superuser can write everything.
    if (process.platform === "win32" || process.getuid?.() === 0) this.skip();
    const path = write(join(directory, "opencode.json"), "{}");
    chmodSync(path, 0o444);
    await refusal(run("install"), /Can't write .* \(EACCES\)/);
    assert.equal(read(path), "{}");
    chmodSync(path, 0o644);
    chmodSync(directory, 0o555);
    await refusal(run("install"), /Can't write .* \(EACCES\)/);
    chmodSync(directory, 0o755);
    assert.deepEqual(readdirSync(directory), ["opencode.json"]);
  });

  it("a folder that became a file is refused", async () => {
    const change = (await plugin.plan("install", "user")) ?? assert.fail();
    write(join(home, ".config"), "");
    await refusal(plugin.apply(change), /Can't read .* \(ENOTDIR\)/);
  });

  it("without a folder there is no folder configuration", () => {
    assert.throws(() => configFiles("project", { directory: undefined, env: {}, home }), /No folder is open/);
  });
});
