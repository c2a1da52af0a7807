import assert from "node:assert/strict";
import { inWords } from "../../../src/daemon/request-words.ts";
import type { MirroredRequest } from "../../../src/engine/folder-changes.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { PermissionRequest, QuestionRequest, ToolCall } from "../../../src/engine/server-model.ts";

function permission(
  kind: string,
  metadata: Readonly<Record<string, unknown>> = {},
  patterns: readonly string[] = ["*"],
  always: readonly string[] = ["*"],
): PermissionRequest {
  return {
    type: "permission",
    id: "per_1",
    sessionID: "ses_1",
    permission: kind,
    patterns,
    always,
    metadata,
  };
}

const FOLDER = "/home/me/shop";

/** The sentence in which `W` asks. */
function told({ wish, subject }: MirroredRequest, more?: number): string {
  return english({ ...wish, values: ["W", subject, ...(more === undefined ? [] : [more])] });
}

describe("a request in words", () => {
  /** What OpenCode sends for each kind, and what a user reads of it. */
  const kinds: readonly (readonly [() => PermissionRequest, string])[] = [
    [
      () => permission("bash", { command: "git push && ls" }, ["git push", "ls"]),
      "W asks to run: git push && ls",
    ],
    [() => permission("edit", { filepath: `${FOLDER}/src/a.ts`, diff: "…" }), "W asks to change src/a.ts"],
    [
      () => ({
        ...permission("edit", { filepath: "src/a.ts, src/b.ts", diff: "…" }, ["src/a.ts", "src/b.ts"]),
        files: [{ path: `${FOLDER}/src/a.ts`, movedTo: "/etc/a.ts" }, { path: `${FOLDER}/src/b.ts` }],
      }),
      "W asks to change src/a.ts → /etc/a.ts, src/b.ts",
    ],
    [() => permission("read", {}, [`${FOLDER}/.env`.slice(1)]), "W asks to read .env"],
    [() => permission("read", {}, ["src/a.ts"]), "W asks to read src/a.ts"],
    [
      () => permission("external_directory", { filepath: "/etc/hostname", parentDir: "/etc" }, ["/etc/*"]),
      "W asks to access files outside the folder: /etc/hostname",
    ],
    [
      () => permission("external_directory", { command: "rm -r /etc/x", directories: ["/etc"] }, ["/etc/*"]),
      "W asks to access files outside the folder: rm -r /etc/x",
    ],
    [
      () => permission("external_directory", { command: "ls 'a'" }, ["/etc/*", "/*"]),
      "W asks to access files outside the folder: ls 'a' (/etc/*, /*)",
    ],
    [
      () =>
        permission("external_directory", { command: "cp /etc/a '/srv/b c'; ls src/opt /varnish" }, [
          "/etc/*",
          "/opt/*",
          "/srv/*",
          "/var/*",
        ]),
      "W asks to access files outside the folder: cp /etc/a '/srv/b c'; ls src/opt /varnish (/opt/*, /var/*)",
    ],
    [
      () => permission("external_directory", { filepath: "/my files/a" }, ["/my files/*"]),
      "W asks to access files outside the folder: /my files/a",
    ],
    [
      () =>
        permission("webfetch", { url: "https://example.org/x", format: "text" }, ["https://example.org/x"]),
      "W asks to fetch https://example.org/x",
    ],
    [() => permission("grep", { pattern: "two" }, ["two"]), "W asks to search files for: two"],
    [
      () => permission("task", { description: "Look", subagent_type: "general" }, ["general"]),
      "W asks to launch the subagent general: Look",
    ],
    [
      () => permission("doom_loop", { tool: "read", input: { a: 1 } }, ["read"]),
      'W made the same call several times and asks to continue: read {"a":1}',
    ],
    [() => permission("github_create_issue"), "W asks to use the tool github_create_issue"],
  ];
  for (const [request, sentence] of kinds)
    it(sentence, () => {
      const words = inWords(request(), FOLDER);
      assert.equal(told(words), sentence);
      assert.ok(english(words.title).length > 0 && words.icon.length > 0);
    });

  it("a question with others after it says how many follow", () => {
    const question = { question: "Which?", header: "Pick", options: [], multiple: false, custom: true };
    const request: QuestionRequest = {
      type: "question",
      id: "que_1",
      sessionID: "ses_1",
      questions: [question, question],
    };
    const words = inWords(request, FOLDER);
    assert.equal(words.title, "Pick");
    assert.equal(told(words), "W asks: Which? (and 1 more question)");
    const three = inWords({ ...request, questions: [question, question, question] }, FOLDER);
    assert.equal(told(three, 2), "W asks: Which? (and 2 more questions)");
  });

  it("what Always Allow covers, if it can be answered", () => {
    const always = (...args: Parameters<typeof permission>): string | undefined => {
      const words = inWords(permission(...args), FOLDER);
      return words.type === "permission" && words.always ? english(words.always) : undefined;
    };
    assert.match(always("edit") ?? "", /^All of this kind, .* until the server restarts$/);
    assert.match(always("bash", {}, [], ["git push *"]) ?? "", /^git push \*, for .*even where denied,/);
    assert.equal(always("bash", {}, [], []), undefined);
  });

  describe("the call that asks", () => {
    const call = { messageID: "msg_1", callID: "call_1" };
    const inCall = (request: PermissionRequest, made?: ToolCall) => {
      const words = inWords({ ...request, call }, FOLDER, made);
      assert.ok(words.type === "permission");
      return words;
    };

    it("a command says where it runs, if that isn't the folder", () => {
      const request = permission("bash", { command: "git clean -fdx" }, ["git clean -fdx"]);
      for (const [workdir, subject] of [
        ["/home/me", "git clean -fdx (/home/me)"],
        ["packages/ui", "git clean -fdx (packages/ui)"],
        [`${FOLDER}/`, "git clean -fdx"],
        [undefined, "git clean -fdx"],
      ] as const) {
        const words = inCall(request, { tool: "bash", input: { command: "git clean -fdx", workdir } });
        assert.equal(told(words), `W asks to run: ${subject}`);
        assert.ok(words.isTold);
        assert.equal(words.subjects.join(" "), subject.replaceAll(/[()]/g, ""));
      }
    });

    it("a command outside the folder says that once", () => {
      const request = permission("external_directory", { command: "npm test" }, ["/out/*"]);
      const words = inCall(request, { tool: "bash", input: { command: "npm test", workdir: "/out" } });
      assert.equal(told(words), "W asks to access files outside the folder: npm test (/out)");
      assert.deepEqual(words.subjects, ["npm test", "/out"]);
      // What it names, too, isn't where all of it runs.
      const command = "ls /out/x && rm -rf build";
      const both = permission("external_directory", { command }, ["/out/*"]);
      const input = { command, workdir: "/out" };
      assert.equal(inCall(both, { tool: "bash", input }).subject, `${command} (/out)`);
    });

    it("a change of a file outside the folder is shown as that, with what is written", () => {
      const path = "/home/me/.bashrc";
      const request = permission("external_directory", { filepath: path, parentDir: "/home/me" }, [
        "/home/me/*",
      ]);
      const content = "alias ls='rm -r'\nexit";
      const words = inCall(request, { tool: "write", input: { filePath: path, content } });
      assert.equal(told(words), `W asks to change a file outside the folder: ${path}`);
      assert.equal(english(words.title), "Change a File Outside the Folder");
      assert.deepEqual(words.subjects, [path, "/home/me/*", `filePath: ${path}\ncontent:\n${content}`]);
      assert.ok(!words.isTold);
      const read = inCall(request, { tool: "read", input: { filePath: path } });
      assert.equal(told(read), `W asks to access files outside the folder: ${path}`);
      assert.ok(read.isTold);
    });

    it("nothing counts as told before the call is known, or if there is more than the subject says", () => {
      const command = permission("bash", { command: "ls" }, ["ls"]);
      assert.ok(!inCall(command).isTold);
      assert.ok(inCall(command, { tool: "bash", input: { command: "ls" } }).isTold);
      const tool = permission("github_delete_file");
      assert.ok(!inCall(tool).isTold);
      assert.ok(!inCall(tool, { tool: "github_delete_file", input: { path: "a" } }).isTold);
      assert.ok(inCall(tool, { tool: "github_delete_file", input: {} }).isTold);
      const edit = permission("edit", { filepath: `${FOLDER}/a.ts`, diff: "+a" });
      assert.ok(!inCall(edit, { tool: "edit", input: {} }).isTold);
    });
  });

  it("hidden characters are shown", () => {
    assert.equal(inWords(permission("bash", { command: "a\u202eb" }), FOLDER).subject, "a\\u{202e}b");
  });
});
