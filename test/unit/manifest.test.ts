import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import type { ConnectionFailure } from "../../src/engine/connection.ts";
import { INTERNAL_COMMANDS } from "../../src/ui/commands/internal-commands.ts";
import { FIRST_STEPS } from "../../src/ui/first-steps.ts";
import { toolInputSchema } from "../../src/tools/input-schema.ts";
import { DECLARATIONS } from "../../src/tools/declarations.ts";

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");

interface Manifest {
  readonly contributes: {
    readonly commands: readonly {
      readonly command: string;
      readonly title: string;
      readonly icon?: string;
      readonly enablement?: string;
    }[];
    readonly keybindings: readonly {
      readonly command: string;
      readonly key?: string;
      readonly mac?: string;
      readonly when?: string;
    }[];
    readonly viewsWelcome: readonly { readonly contents: string; readonly when: string }[];
    readonly menus: Readonly<Record<string, readonly { readonly command: string; readonly when?: string }[]>>;
    readonly walkthroughs: readonly {
      readonly id: string;
      readonly steps: readonly {
        readonly id: string;
        readonly description: string;
        readonly completionEvents: readonly string[];
        readonly media: { readonly image: Readonly<Record<string, string>>; readonly altText: string };
      }[];
    }[];
    readonly languageModelTools: readonly {
      readonly name: string;
      readonly toolReferenceName: string;
      readonly displayName: string;
      readonly modelDescription: string;
      readonly inputSchema: unknown;
      readonly when: string;
    }[];
  };
}

describe("the extension's manifest", () => {
  const text = read("package.json");
  const manifest = JSON.parse(text) as Manifest;
  const words = JSON.parse(read("package.nls.json")) as Readonly<Record<string, string>>;
  const { commands, keybindings, menus, walkthroughs, languageModelTools } = manifest.contributes;

  it("describes each tool to the editor's agents as to OpenCode's", () => {
    assert.deepEqual(
      languageModelTools.map(({ name, displayName, modelDescription, inputSchema }) => ({
        name,
        title: words[displayName.slice(1, -1)],
        modelDescription,
        inputSchema,
      })),
      DECLARATIONS.map((tool) => ({
        name: tool.name,
        title: tool.title,
        modelDescription: tool.description,
        inputSchema: toolInputSchema(tool),
      })),
    );
  });

  it("offers the tools only while they are enabled, each with a unique reference name", () => {
    for (const { when } of languageModelTools) assert.equal(when, "config.asyncagents.agentTools.enabled");
    const names = languageModelTools.map(({ toolReferenceName }) => toolReferenceName);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^openCode[A-Z][a-z]+$/);
  });

  it("names no tool for VS Code's chat that doesn't exist, in any language", () => {
    const exist = new Set(languageModelTools.map(({ toolReferenceName }) => `#${toolReferenceName}`));
    for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) {
      const named = [...read(file).matchAll(/`(#\w+)`/g)].map(([, name]) => name ?? "");
      assert.ok(named.length > 0, file);
      assert.deepEqual(
        named.filter((name) => !exist.has(name)),
        [],
        file,
      );
    }
  });

  it("has no backticks in the texts of empty views, which show them as they are", () => {
    for (const file of ["package.nls.json", "package.nls.zh-cn.json"])
      for (const [key, shown] of Object.entries(JSON.parse(read(file)) as Record<string, string>))
        if (key.startsWith("welcome.")) assert.doesNotMatch(shown, /`/, `${file} ${key}`);
  });

  it("has every text that it refers to, and no other", () => {
    const named = [...text.matchAll(/"%([^"%]+)%"/g)].map(([, key]) => key ?? "");
    assert.deepEqual([...new Set(named)].sort(), Object.keys(words).sort());
  });

  it("declares exactly the commands that exist, apart from internal ones", () => {
    const exported = [...read("src/ui/commands/index.ts").matchAll(/export \{([^}]*)\}/g)].flatMap(
      ([, names = ""]) => names.split(",").map((name) => name.replace(/.* as /, "").trim()),
    );
    assert.deepEqual(
      [...commands.map(({ command }) => command), ...INTERNAL_COMMANDS]
        .map((command) => command.replace(/^_?asyncagents\./, ""))
        .sort(),
      exported.filter(Boolean).sort(),
    );
  });

  it("has every command in the table of the README", () => {
    const listed = [...read("README.md").matchAll(/^\|[^|]+\| `(asyncagents\.\w+)` /gm)].map(([, id]) => id);
    assert.deepEqual(listed.sort(), commands.map(({ command }) => command).sort());
  });

  it("says of each command when it can be run, apart from those that always can", () => {
    const always = commands
      .filter(({ enablement }) => enablement === undefined)
      .map(({ command }) => command);
    assert.deepEqual(always.sort(), [
      "asyncagents.connect",
      // Its key must also work in the seconds in which a window doesn't know yet that it is trusted.
      "asyncagents.launchPrompt",
      "asyncagents.openWalkthrough",
      "asyncagents.showLog",
    ]);
  });

  it("uses only declared commands in menus", () => {
    const known = commands.map(({ command }) => command);
    for (const { command } of Object.values(menus).flat()) assert.ok(known.includes(command), command);
  });

  it("has at least two words in each command's title, because the palette shows nothing else", () => {
    for (const { title } of commands) assert.match(words[title.slice(1, -1)] ?? "", /\S \S/);
  });

  it("uses no editorIsOpen, which is also true without a text editor", () => {
    const clauses = [...keybindings, ...Object.values(menus).flat()].map(({ when = "" }) => when);
    assert.deepEqual(
      clauses.filter((when) => when.includes("editorIsOpen")),
      [],
    );
  });

  it("uses no isWorkspaceTrusted, which a reloaded window learns seconds late", () => {
    assert.doesNotMatch(read("package.json"), /isWorkspaceTrusted/);
  });

  it("allows breakpoints in every script that is built", () => {
    const launch = JSON.parse(read(".vscode/launch.json")) as {
      readonly configurations: readonly { readonly outFiles: readonly string[] }[];
    };
    const kinds = [...read("esbuild.config.mjs").matchAll(/dist\/[\w-]+(\.c?js)"/g)].map(([, kind]) => kind);
    assert.ok(kinds.length > 3);
    for (const { outFiles } of launch.configurations)
      for (const kind of kinds)
        assert.ok(outFiles.includes(`\${workspaceFolder}/dist/**/*${kind}`), `${kind} is missing`);
  });

  it("completes each first step by the user's action, and has its picture for every kind of theme", () => {
    const [walkthrough] = walkthroughs;
    assert.equal(walkthrough?.id, "firstSteps");
    assert.deepEqual(
      walkthrough.steps.map(({ id }) => id),
      FIRST_STEPS,
    );
    for (const { id, completionEvents, media } of walkthrough.steps) {
      const key = `onContext:asyncagents.firstSteps.${id}`;
      assert.deepEqual(completionEvents, [key, `${key} && asyncagents.firstSteps.shown`]);
      assert.deepEqual(Object.keys(media.image), ["dark", "light", "hc", "hcLight"]);
      for (const picture of Object.values(media.image)) {
        assert.match(picture, /^media\/walkthrough\/[\w-]+\.png$/);
        assert.ok(statSync(new URL(`../../${picture}`, import.meta.url)).size > 1_000, picture);
      }
    }
    assert.match(read(".vscodeignore"), /^!media\/walkthrough\/\*\.png$/m);
  });

  it("links only to existing commands from the empty view and the first steps", () => {
    const named = Object.values(words).flatMap((word) =>
      [...word.matchAll(/\(command:(_?asyncagents\.\w+)/g)].map(([, command]) => command),
    );
    assert.ok(named.includes("asyncagents.openWalkthrough"));
    const existing = [...commands.map(({ command }) => command), ...INTERNAL_COMMANDS];
    for (const command of named) assert.ok(existing.includes(command ?? ""), command);
  });

  it("[EXT-5] offers only eight commands in a row's menu for several rows", () => {
    const forSeveral = menus["view/item/context"]?.filter(
      ({ when = "" }) => !when.includes("!listMultiSelection"),
    );
    assert.deepEqual(
      forSeveral?.map(({ command }) => command),
      [
        "asyncagents.compareChanges",
        "asyncagents.cancel",
        "asyncagents.adopt",
        "asyncagents.copyResult",
        "asyncagents.copyTaskId",
        "asyncagents.restore",
        "asyncagents.delete",
        "asyncagents.clear",
      ],
    );
  });

  it("shows for each failure one text, with the button that helps", () => {
    const buttons: Readonly<Record<ConnectionFailure["code"], string>> = {
      "not-found": "Set Up OpenCode",
      "bad-path": "Change the Path",
      "start-failed": "Try Again",
      "start-timeout": "Try Again",
      "folder-refused": "Try Again",
      unreachable: "Try Again",
      "not-opencode": "Change the Address",
      "wrong-password": "Enter Password",
      "too-old": "Try Again",
      "too-new": "Set Up OpenCode 1",
      "server-too-new": "Change the Address",
      "bad-url": "Change the Address",
      "gave-up": "Try Again",
      "daemon-failed": "Try Again",
      outdated: "Show Extension",
    };
    const isShown = (when: string, code: string): boolean => {
      const [, operator, value = ""] =
        /^asyncagents\.state == failed && asyncagents\.failure (==|=~) (.+)$/.exec(when) ?? [];
      return operator === "==" ? value === code : new RegExp(value.slice(1, -1)).test(code);
    };
    const ofFailures = manifest.contributes.viewsWelcome.filter(({ when }) => when.includes("failure"));
    for (const [code, button] of Object.entries(buttons)) {
      const [shown, ...others] = ofFailures.filter(({ when }) => isShown(when, code));
      assert.deepEqual(others, [], code);
      // A link on a line of its own is a button.
      const [, label] =
        /^\[(.+)\]\(command:\S+\)$/m.exec(words[shown?.contents.slice(1, -1) ?? ""] ?? "") ?? [];
      assert.equal(label, button, code);
    }
  });

  it("allows what can be done with the task whose output is in front, also if the active session has none", () => {
    const ofSession = ["showOutput", "searchOutputs", "compareChanges", "filter", "showOverview"];
    const others = commands.filter(({ command }) => !ofSession.includes(command.replace(/^\w+\./, "")));
    const conditions = [
      ...others.map(({ enablement }) => enablement),
      ...keybindings.map(({ when }) => when),
    ];
    const ofTasks = conditions.filter((condition) => condition?.includes("asyncagents.hasTasks"));
    assert.ok(ofTasks.length > 15);
    for (const condition of ofTasks)
      assert.match(
        condition ?? "",
        /(^|&& \()asyncagents\.hasTasks \|\| activeWebviewPanelId == 'asyncagents\.output'(\)$|$)/,
      );
  });

  it("allows answering requests whenever connected, whatever the active session is", () => {
    const { when } = keybindings.find(({ command }) => command === "asyncagents.answer") ?? {};
    assert.equal(when, "asyncagents.connected");
  });

  it("binds chords under one prefix, and Ctrl+Enter, Ctrl+F and F2 only where they belong", () => {
    const known = commands.map(({ command }) => command);
    for (const { command, key, mac, when } of keybindings) {
      assert.ok(known.includes(command) || command === "asyncagents.tasks.focus", command);
      if ([key, mac].some((chord) => chord?.endsWith("+enter")))
        assert.equal(when, "editorTextFocus && resource in asyncagents.promptEditors");
      else if (key === "ctrl+f") {
        assert.equal(mac, "cmd+f");
        // The panel stays the active one while the focus is elsewhere, where the key has another meaning.
        const elsewhere = ["editor", "input", "terminal", "sideBar", "panel", "auxiliaryBar"];
        const conditions = elsewhere.map((place) => `!${place}Focus`);
        assert.equal(when, ["activeWebviewPanelId == 'asyncagents.output'", ...conditions].join(" && "));
      } else if (key === "f2") assert.match(when ?? "", /^focusedView == asyncagents\.tasks && !inputFocus/);
      else {
        assert.match(key ?? "", /^ctrl\+k a [a-z]$/);
        assert.equal(mac, key?.replace("ctrl", "cmd"));
      }
    }
  });
});
