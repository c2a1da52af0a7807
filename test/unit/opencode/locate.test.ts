import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import { locateOpenCode } from "../../../src/opencode/locate.ts";
import type { LocateOptions } from "../../../src/opencode/locate.ts";

function locate(options: Partial<LocateOptions> & { present?: Record<string, string | null> }) {
  const present = options.present ?? {};
  return locateOpenCode({
    configuredPath: "",
    platform: "linux",
    env: { PATH: "/usr/bin:/opt/bin" },
    home: "/home/me",
    files: {
      exists: async (path) => path in present,
      // null: a file that may not be executed.
      isExecutable: async (path) => typeof present[path] === "string",
      readText: async (path) => present[path] ?? undefined,
    },
    ...options,
  });
}

const SHIM = `@ECHO off\r\nSETLOCAL\r\nCALL :find_dp0\r\n"%dp0%\\node_modules\\opencode-ai\\bin\\opencode.exe"   %*\r\n`;
const windows = {
  platform: "win32" as const,
  home: "C:\\Users\\me",
  env: {
    Path: "C:\\Windows;C:\\tools",
    PATHEXT: ".COM;.EXE;.BAT;.CMD",
    APPDATA: "C:\\Users\\me\\AppData\\Roaming",
  },
};
const NPM = "C:\\Users\\me\\AppData\\Roaming\\npm";

describe("Finding the executable", () => {
  it("prefers the configured path", async () => {
    const present = { "/my/opencode": "", "/usr/bin/opencode": "" };
    assert.deepEqual(await locate({ configuredPath: "/my/opencode", present }), {
      executable: "/my/opencode",
    });
    assert.deepEqual(await locate({ configuredPath: "~/oc", present: { "/home/me/oc": "" } }), {
      executable: "/home/me/oc",
    });
  });

  for (const [what, configuredPath, problem] of [
    ["that doesn't exist", "/no/opencode", /no such file/],
    ["of a file that isn't executable", "/etc/text", /isn't an executable file/],
    ["that is relative", "bin/opencode", /isn't absolute/],
  ] as const)
    it(`refuses a configured path ${what}, and searches nowhere else`, async () => {
      const found = await locate({ configuredPath, present: { "/etc/text": null, "/usr/bin/opencode": "" } });
      assert.ok("code" in found);
      assert.equal(found.code, "bad-path");
      assert.match(english(found.message), problem);
      assert.match(english(found.remedy), /asyncagents\.server\.path/);
    });

  it("searches PATH in order, then the install folders", async () => {
    const inHome = { "/home/me/.opencode/bin/opencode": "" };
    assert.deepEqual(await locate({ present: { ...inHome, "/opt/bin/opencode": "" } }), {
      executable: "/opt/bin/opencode",
    });
    assert.deepEqual(await locate({ present: inHome }), { executable: "/home/me/.opencode/bin/opencode" });
  });

  it("never runs a program from the open folder: relative entries of PATH are ignored", async () => {
    const found = await locate({ env: { PATH: ".::bin" }, present: { opencode: "", "bin/opencode": "" } });
    assert.ok("code" in found);
    assert.equal(found.code, "not-found");
  });

  it("says how to install OpenCode if there is none", async () => {
    const found = await locate({});
    assert.ok("code" in found);
    assert.equal(found.code, "not-found");
    assert.match(english(found.remedy), /Install OpenCode/);
  });

  it("uses the executable behind npm's command script on Windows", async () => {
    const present = {
      [`${NPM}\\opencode.cmd`]: SHIM,
      [`${NPM}\\node_modules\\opencode-ai\\bin\\opencode.exe`]: "",
    };
    assert.deepEqual(await locate({ ...windows, present }), {
      executable: `${NPM}\\node_modules\\opencode-ai\\bin\\opencode.exe`,
    });
  });

  it("finds it behind an older script that starts a JavaScript file", async () => {
    const script = `"%dp0%\\node.exe"  "%dp0%\\node_modules\\opencode-ai\\bin\\opencode" %*`;
    const executable = `${NPM}\\node_modules\\opencode-ai\\node_modules\\opencode-windows-x64\\bin\\opencode.exe`;
    const present = { [`${NPM}\\opencode.cmd`]: script, [`${NPM}\\node.exe`]: "", [executable]: "" };
    assert.deepEqual(await locate({ ...windows, present }), { executable });
  });

  it("says that a command script cannot be run if no executable is found behind it", async () => {
    const found = await locate({ ...windows, present: { "C:\\tools\\opencode.cmd": "@echo off" } });
    assert.ok("code" in found);
    assert.equal(found.code, "bad-path");
    assert.match(english(found.message), /command script/);
  });

  it("continues to a real executable after an unusable script", async () => {
    const present = { "C:\\Windows\\opencode.cmd": "@echo off", "C:\\tools\\opencode.exe": "" };
    assert.deepEqual(await locate({ ...windows, present }), { executable: "C:\\tools\\opencode.exe" });
  });
});
