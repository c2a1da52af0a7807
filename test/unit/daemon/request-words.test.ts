import assert from "node:assert/strict";
import { inWords } from "../../../src/daemon/request-words.ts";
import type { MirroredRequest } from "../../../src/engine/folder-changes.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { PermissionRequest, QuestionRequest } from "../../../src/engine/server-model.ts";

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
    assert.match(always("edit") ?? "", /^All requests of this kind, .* until the server restarts$/);
    assert.match(always("bash", {}, [], ["git push *"]) ?? "", /^git push \*, for every agent/);
    assert.equal(always("bash", {}, [], []), undefined);
  });

  it("hidden characters are shown", () => {
    assert.equal(inWords(permission("bash", { command: "a\u202eb" }), FOLDER).subject, "a\\u{202e}b");
  });
});
