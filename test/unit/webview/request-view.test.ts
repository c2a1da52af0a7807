import assert from "node:assert/strict";

import { inWords } from "../../../src/daemon/request-words.ts";
import type { PermissionRequest } from "../../../src/engine/server-model.ts";
import type { Child } from "../../../src/engine/subagent.ts";
import { isWithin, toRequestView } from "../../../src/ui/output/view-model.ts";
import { fakeSubagent, fakeTask, TASK_ID } from "../../support/panel-page/fake-task.ts";
import { WORDING } from "../../support/panel-page/panel-page.ts";

const permission = (facts: Partial<PermissionRequest>): PermissionRequest => ({
  type: "permission",
  id: "per_1",
  sessionID: TASK_ID,
  permission: "bash",
  patterns: ["git push"],
  always: ["git push *"],
  metadata: {},
  ...facts,
});

describe("requests in the panel", () => {
  const shown = (facts: Partial<PermissionRequest>, child: Child = fakeTask()) => {
    const view = toRequestView({ request: inWords(permission(facts), "/tmp/work"), child }, TASK_ID, WORDING);
    assert.ok(view.kind === "permission");
    return view;
  };

  it("are those of the session and its descendants, and no others", () => {
    const below = fakeSubagent({ id: "b", parentSessionID: TASK_ID });
    const deep = fakeSubagent({ id: "c", parentSessionID: "b" });
    const orphan = fakeSubagent({ id: "d", parentSessionID: "gone" });
    const children = new Map<string, Child>(
      [fakeTask(), below, deep, orphan].map((child) => [child.id, child]),
    );
    const within = (child: Child, id: string): boolean =>
      isWithin({ child: (each) => children.get(each) }, child, id);
    assert.ok(within(fakeTask(), TASK_ID) && within(below, TASK_ID) && within(deep, TASK_ID));
    assert.ok(!within(orphan, TASK_ID) && !within(fakeTask(), "b"));
  });

  it("show a command once, instead of its parts, and paths relative to the folder", () => {
    const view = (facts: Partial<PermissionRequest>, input?: Record<string, unknown>) => {
      const open = {
        request: inWords(permission(facts), "/tmp/work", input && { tool: "bash", input }),
        child: fakeTask(),
      };
      const shown = toRequestView(open, TASK_ID, WORDING);
      return shown.kind === "permission" && shown.subjects;
    };
    const patterns = ["cd src", "git push origin main"];
    const command = "cd src &&\n  git push origin main";
    assert.deepEqual(view({ patterns }), patterns);
    assert.deepEqual(view({ patterns }, { command }), [command]);
    assert.deepEqual(view({ patterns: [...patterns, "rm x"] }, { command }), [command, "rm x"]);
    assert.deepEqual(view({ permission: "edit", patterns: ["tmp/work/a.ts", "tmp/b.ts"] }, { command }), [
      "a.ts",
      "tmp/b.ts",
    ]);
  });

  it("show what is asked: the whole command, the reason, the change", () => {
    const long = `rm ${"x".repeat(50_000)}`;
    assert.deepEqual(shown({ metadata: { command: long } }).subjects, [long, "git push"]);
    assert.deepEqual(shown({ metadata: { command: "git push" } }).subjects, ["git push"]);
    assert.deepEqual(shown({ permission: "todowrite", patterns: ["*"] }).subjects, ["todowrite"]);
    const outside = { permission: "external_directory", patterns: ["/etc/*"] };
    assert.deepEqual(shown({ ...outside, metadata: { filepath: "/etc/hosts" } }).subjects, [
      "/etc/hosts",
      "/etc/*",
    ]);
    const subagent = { subagent_type: "general", description: "Look" };
    assert.deepEqual(shown({ permission: "task", patterns: ["general"], metadata: subagent }).subjects, [
      "general: Look",
    ]);
    assert.deepEqual(shown({ patterns: ["read"], metadata: { input: { a: 1 } } }).subjects, [
      "read",
      '{\n  "a": 1\n}',
    ]);
    assert.equal(shown({ metadata: { reason: "to publish" } }).reason, "to publish");
    assert.equal(shown({ metadata: { diff: "+a" } }).diff?.text, "+a");
    assert.equal(shown({ metadata: { diff: 1, reason: {} } }).diff, undefined);
  });

  it("show the name and the input of a tool that isn't OpenCode's, in which a description is no reason", () => {
    const asks = permission({ permission: "github_create_issue", patterns: ["*"], always: ["*"] });
    const told = (input?: Record<string, unknown>) => {
      const words = inWords(asks, "/work", input && { tool: "github_create_issue", input });
      return words.type === "permission" && [words.subjects, words.reason];
    };
    assert.deepEqual(told(), [["github_create_issue"], undefined]);
    assert.deepEqual(told({}), [["github_create_issue"], undefined]);
    const input = { title: "It fails", description: "To be merged at once" };
    assert.deepEqual(told(input), [["github_create_issue", JSON.stringify(input, undefined, 2)], undefined]);
  });

  it("show hidden characters of the change", () => {
    const { diff } = shown({ metadata: { diff: "+a\u2066b\r\n" } });
    assert.equal(diff?.text, "+a\\u{2066}b\r\n");
  });

  it("with a question show hidden characters, and answer with the original text", () => {
    const option = { label: "y\u202ees", description: "\u200b" };
    const how = { multiple: false, custom: true };
    const questions = [{ header: "H\u202e", question: "Q\u202e", options: [option], ...how }];
    const request = { type: "question", id: "que_1", sessionID: TASK_ID, questions } as const;
    const view = toRequestView({ request: inWords(request, "/work"), child: fakeTask() }, TASK_ID, WORDING);
    assert.deepEqual(view.kind === "question" && view.questions, [
      {
        header: "H\\u{202e}",
        question: "Q\\u{202e}",
        options: [{ answer: option.label, label: "y\\u{202e}es", description: "\\u{200b}" }],
        ...how,
      },
    ]);
  });

  it("have the request's own reason, else the tool call's, and none that is already shown", () => {
    const why = (metadata: Record<string, unknown>, input?: Record<string, unknown>, command = "ls") => {
      const call = input && { tool: "bash", input };
      const words = inWords(permission({ metadata: { command, ...metadata } }), "/work", call);
      return words.type === "permission" && words.reason;
    };
    assert.equal(why({}, { description: "Look" }), "Look");
    assert.equal(why({ reason: "Ship" }, { description: "Look" }), "Ship");
    assert.equal(why({ description: "Look" }, undefined, "echo Look"), undefined);
    assert.equal(why({ reason: " ", description: 1 }, { description: {} }), undefined);
  });

  it("show hidden characters of what is asked", () => {
    assert.deepEqual(shown({ patterns: ["rm a\u202eb"] }).subjects, ["rm a\\u{202e}b"]);
    assert.equal(shown({ metadata: { reason: "a\u200bb" } }).reason, "a\\u{200b}b");
  });

  it("name the agent, and the task if it is a subagent", () => {
    assert.equal(shown({}).asker, "build");
    assert.equal(shown({}, fakeSubagent()).asker, 'explore of "Look for slow tests (@explore subagent)"');
  });
});
