import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import { locateOpenCode } from "../../../src/opencode/locate.ts";
import type { LocateOptions } from "../../../src/opencode/locate.ts";

interface Machine {
  readonly present?: Record<string, string | null>;
  /** Where links lead. */
  readonly links?: Record<string, string>;
  readonly versions?: Record<string, string>;
}

function locate(options: Partial<LocateOptions> & Machine) {
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
      realPath: async (path) => options.links?.[path] ?? path,
      version: async (path) => options.versions?.[path],
    },
    ...options,
  });
}

async function found(options: Parameters<typeof locate>[0]) {
  const located = await locate(options);
  return "code" in located ? english(located.message) : located.executable;
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
    assert.equal(await found({ configuredPath: "/my/opencode", present }), "/my/opencode");
    assert.equal(await found({ configuredPath: "~/oc", present: { "/home/me/oc": "" } }), "/home/me/oc");
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
    assert.equal(await found({ present: { ...inHome, "/opt/bin/opencode": "" } }), "/opt/bin/opencode");
    assert.equal(await found({ present: inHome }), "/home/me/.opencode/bin/opencode");
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
    assert.equal(
      await found({ ...windows, present }),
      `${NPM}\\node_modules\\opencode-ai\\bin\\opencode.exe`,
    );
  });

  it("finds it behind an older script that starts a JavaScript file", async () => {
    const script = `"%dp0%\\node.exe"  "%dp0%\\node_modules\\opencode-ai\\bin\\opencode" %*`;
    const executable = `${NPM}\\node_modules\\opencode-ai\\node_modules\\opencode-windows-x64\\bin\\opencode.exe`;
    const present = { [`${NPM}\\opencode.cmd`]: script, [`${NPM}\\node.exe`]: "", [executable]: "" };
    assert.equal(await found({ ...windows, present }), executable);
  });

  it("says that a command script cannot be run if no executable is found behind it", async () => {
    const found = await locate({ ...windows, present: { "C:\\tools\\opencode.cmd": "@echo off" } });
    assert.ok("code" in found);
    assert.equal(found.code, "bad-path");
    assert.match(english(found.message), /command script/);
  });

  it("continues to a real executable after an unusable script", async () => {
    const present = { "C:\\Windows\\opencode.cmd": "@echo off", "C:\\tools\\opencode.exe": "" };
    assert.equal(await found({ ...windows, present }), "C:\\tools\\opencode.exe");
  });

  describe("of several executables", () => {
    const FIRST = "/usr/bin/opencode";
    const SECOND = "/opt/bin/opencode";
    const present = { [FIRST]: "", [SECOND]: "" };
    const PRIVATE = `/home/me/.local/state/opencode-async-agents/opencode-1/node_modules/opencode-linux-${process.arch}/bin/opencode`;

    for (const [what, first, second, chosen] of [
      ["the newest supported one", "1.18.20", "1.18.33", SECOND],
      ["the first one of equal versions", "1.18.33", "1.18.33", FIRST],
      ["a later 1.x", "1.19.6", "1.18.33", FIRST],
      ["1.x behind 2.x", "2.3.2", "1.18.20", SECOND],
      ["1.x before one that is too old", "1.2.27", "1.18.20", SECOND],
      ["a supported one behind an unknown one", undefined, "1.18.20", SECOND],
      ["an unknown one behind 2.x", "2.3.2", undefined, SECOND],
      ["a build from source behind 2.x", "2.3.2", "0.0.0-dev-202611", SECOND],
    ] as const)
      it(`takes ${what}`, async () => {
        const versions = { ...(first && { [FIRST]: first }), ...(second && { [SECOND]: second }) };
        const located = await locate({ present, versions });
        assert.ok(!("code" in located));
        assert.equal(located.executable, chosen);
        assert.deepEqual(
          located.others.map(({ executable }) => executable),
          [chosen === FIRST ? SECOND : FIRST],
        );
      });

    it("counts an executable once that several paths lead to", async () => {
      const located = await locate({ present, links: { [SECOND]: FIRST } });
      assert.deepEqual(located, { executable: FIRST, version: undefined, others: [] });
    });

    it("says that there is only version 2, even if a version that is too old is there, too", async () => {
      const versions = { [FIRST]: "1.2.27", [SECOND]: "2.3.2" };
      assert.match(
        await found({ present, versions }),
        /^OpenCode 2\.3\.2 is installed, but .* OpenCode 1 \(1\.18\.15/,
      );
    });

    it("says that there is only one that is too old", async () => {
      const versions = { [FIRST]: "1.2.27", [SECOND]: "1.17.20" };
      assert.match(await found({ present, versions }), /^OpenCode 1\.17\.20 is too old/);
    });

    it("searches nowhere else if one is configured, and asks it nothing", async () => {
      const versions = { [FIRST]: "2.3.2", [SECOND]: "1.18.33" };
      const located = await locate({ configuredPath: FIRST, present, versions });
      assert.deepEqual(located, { executable: FIRST, version: undefined, others: [] });
    });

    it("finds the private copy", async () => {
      const versions = { [FIRST]: "2.3.2", [PRIVATE]: "1.18.33" };
      assert.equal(await found({ present: { [FIRST]: "", [PRIVATE]: "" }, versions }), PRIVATE);
    });

    it("passes over a private executable that does not run on this machine", async () => {
      const baseline = PRIVATE.replace("/bin/", "-baseline/bin/");
      const versions = { [FIRST]: "2.3.2", [baseline]: "1.18.33" };
      const copies = { [PRIVATE]: "", [baseline]: "" };
      assert.equal(await found({ present: { [FIRST]: "", ...copies }, versions }), baseline);
    });
  });
});
