import assert from "node:assert/strict";
import { type AgentCall, AgentPermissions, CallingAgent } from "../../../src/engine/agent-permissions.ts";
import { AskFirst, messageOf } from "../../../src/engine/errors.ts";
import { evaluate } from "../../../src/engine/permissions.ts";
import type { AgentInfo, Message, PermissionRule, Session } from "../../../src/engine/server-model.ts";
import { MemoryServer } from "../../support/memory-server.ts";

type Rules = readonly PermissionRule[];

const rule =
  (action: PermissionRule["action"]) =>
  (permission: string, pattern = "*"): PermissionRule => ({ permission, pattern, action });
const [allow, ask, deny] = [rule("allow"), rule("ask"), rule("deny")];
const ALL = [allow("*")];

const agent = (name: string, permission: Rules = ALL, changed: Partial<AgentInfo> = {}): AgentInfo => ({
  ...{ name, mode: "subagent", hidden: false, permission },
  ...changed,
});

describe("An agent that launches others", () => {
  const caller = (rules: Rules, agents: readonly AgentInfo[] = [], permitted: readonly string[] = []) =>
    new CallingAgent("lead", rules, agents, permitted);

  it("is told which agents it can launch if it may not launch one", () => {
    const agents = [
      agent("build", ALL, { mode: "primary" }),
      agent("title", ALL, { hidden: true }),
      agent("general"),
      agent("explore"),
      agent("writer", ALL, { mode: "all" }),
    ];
    const limited = caller([...ALL, deny("task", "general"), ask("task", "writer")], agents);
    limited.requireMayLaunch("explore");
    assert.throws(
      () => limited.requireMayLaunch("general"),
      (error) => {
        assert.equal(
          messageOf(error),
          'The permissions of agent "lead" in OpenCode don\'t let it launch "general"; it can launch: explore, writer.',
        );
        return true;
      },
    );
    assert.throws(() => caller([deny("*")], agents).requireMayLaunch("general"), {
      code: "not-allowed",
      message: /; it can launch: none\.$/,
    });
  });

  it("needs the user's permission for the agents that its rules ask about, unless it has it", () => {
    const rules = [...ALL, ask("task", "writer")];
    assert.throws(
      () => caller(rules, [], ["general"]).requireMayLaunch("writer"),
      (error) => {
        assert.ok(error instanceof AskFirst);
        assert.equal(error.agent, "writer");
        assert.equal(messageOf(error), 'Agent "lead" needs the user\'s permission to launch "writer".');
        return true;
      },
    );
    caller(rules, [], ["general", "writer"]).requireMayLaunch("writer");
    assert.throws(() => caller([...ALL, deny("task", "writer")], [], ["writer"]).requireMayLaunch("writer"), {
      code: "not-allowed",
    });
  });

  it("limits an agent in a worktree whatever the folder says of it, and relaxes nothing of that", () => {
    const rules = [...ALL, ask("bash"), deny("webfetch")];
    const alike = caller(rules, [agent("same", rules)]);
    assert.deepEqual(alike.limits("same"), []);
    assert.deepEqual(alike.limitsElsewhere("same"), [ask("bash"), deny("webfetch")]);
    const own = [...ALL, deny("bash"), ask("edit")];
    const strict = caller(rules, [agent("strict", own)]).limitsElsewhere("strict");
    assert.deepEqual(
      ["bash", "webfetch", "edit", "read"].map((name) => evaluate([...own, ...strict], name, "x")),
      ["deny", "deny", "ask", "allow"],
    );
  });

  it("limits an agent to its own rules, and one that is unknown as if it were allowed everything", () => {
    const rules = [...ALL, deny("bash")];
    const agents = [agent("reader", rules), agent("worker")];
    const lead = caller(rules, agents);
    // The subagents of the reader would be allowed more than the lead, but inherit this.
    assert.deepEqual(lead.limits("reader"), [deny("bash")]);
    assert.deepEqual(lead.limits("worker"), [deny("bash")]);
    assert.deepEqual(lead.limits("nobody"), [deny("bash")]);
    assert.deepEqual(lead.limits("worker", [deny("bash")]), []);
    assert.deepEqual(caller(rules, [agent("reader", rules)]).limits("reader"), []);
  });

  describe("whose rules ask about commands", () => {
    const asks = [...ALL, ask("bash")];

    it("can't limit what subagents of its agents ask, and so denies those subagents", () => {
      const lead = caller(asks, [agent("reader", asks), agent("strong"), agent("strict", [deny("*")])]);
      assert.deepEqual(lead.limits("reader"), [deny("task", "strong")]);
    });

    it("denies no subagent that its agents can't launch anyway", () => {
      const reader = agent("reader", [...asks, deny("task", "strong")]);
      assert.deepEqual(caller(asks, [reader, agent("strong")]).limits("reader"), []);
      const other = caller(asks, [agent("reader", asks), agent("strong")]);
      assert.deepEqual(other.limits("reader", [deny("task", "strong")]), []);
    });

    it("denies subagents only what its other denials don't keep from them", () => {
      const rules = [...asks, deny("edit")];
      const agents = [agent("reader", rules), agent("editor", asks), agent("strong")];
      assert.deepEqual(caller(rules, agents).limits("reader"), [deny("edit"), deny("task", "strong")]);
    });
  });

  it("knows that subagents inherit the rules about other directories, and no other permission", () => {
    const outside = [...ALL, ask("external_directory")];
    const agents = [agent("reader", outside), agent("strong")];
    const lead = caller(outside, agents);
    assert.deepEqual(lead.limits("reader"), [deny("task", "strong")]);
    assert.deepEqual(lead.limits("reader", [ask("external_directory")]), []);
    const asks = [...ALL, ask("bash")];
    assert.deepEqual(caller(asks, [agent("reader", asks), agent("strong")]).limits("reader", [ask("bash")]), [
      deny("task", "strong"),
    ]);
  });
});

describe("The agent of a call", () => {
  const call: AgentCall = { sessionID: "ses_1" };
  let server: MemoryServer;
  let session: Session;
  let message: Message | undefined;
  let asked: string[];
  let kept: Session[];
  let permissions: AgentPermissions;

  beforeEach(async () => {
    server = new MemoryServer();
    session = await server.createSession({ title: "Work", agent: "ofSession" });
    message = undefined;
    asked = [];
    kept = [];
    permissions = new AgentPermissions(
      {
        message: async (sessionID, id) => {
          asked.push(`${sessionID} ${id}`);
          return message;
        },
        session: async (id) => (id === "ses_1" ? session : server.session(id)),
        restrict: async (id, rules) => server.restrict(id, rules),
      },
      {
        all: async () => [
          agent("ofCall", [deny("*")]),
          agent("ofMessage", [deny("*")]),
          agent("ofSession", [deny("*")]),
          agent("general"),
        ],
      },
      { session: () => undefined, applySession: (changed) => void kept.push(changed) },
    );
  });

  /** Which agent a call counts as: each of the known ones may launch none, and the refusal names it. */
  async function refused(changed: Partial<AgentCall> = {}): Promise<string | undefined> {
    const caller = await permissions.callingAgent({ ...call, ...changed });
    try {
      caller.requireMayLaunch("general");
      return undefined;
    } catch (error) {
      return /"(.*?)"/.exec(messageOf(error))?.[1];
    }
  }

  it("is the one that it names, or else that of its message, or else that of its session", async () => {
    message = {
      info: {
        ...{ role: "user", id: "msg_1", sessionID: "ses_1", created: 1, agent: "ofMessage" },
        model: { providerID: "memory", modelID: "m" },
      },
      parts: [],
    };
    assert.equal(await refused({ agent: "ofCall", messageID: "msg_1" }), "ofCall");
    assert.equal(await refused({ messageID: undefined }), "ofSession");
    assert.deepEqual(asked, []);
    assert.equal(await refused({ messageID: "msg_1" }), "ofMessage");
    assert.deepEqual(asked, ["ses_1 msg_1"]);
    message = undefined;
    assert.equal(await refused({ messageID: "msg_1" }), "ofSession");
  });

  it("has no limits of its own if no agent has worked in its session", async () => {
    session = { ...session, agent: undefined };
    assert.equal(await refused(), undefined);
    session = { ...session, permission: [deny("task")] };
    assert.equal(await refused(), "");
  });

  it("needs the user's permission if it is unknown, which the call can have", async () => {
    session = { ...session, agent: "gone" };
    const caller = await permissions.callingAgent(call);
    assert.throws(() => caller.requireMayLaunch("general"), { code: "needs-permission" });
    (await permissions.callingAgent({ ...call, permitted: ["general"] })).requireMayLaunch("general");
  });

  describe("that sends to a running task", () => {
    const restricted = [...ALL, deny("bash")];
    let task: Session;

    beforeEach(async () => {
      session = { ...session, agent: undefined, permission: restricted };
      task = await server.createSession({ title: "Task", permission: restricted });
    });

    const required = () => permissions.requireNoMoreThanCaller({ id: task.id, agent: "general" }, call);

    it("is refused if the task is allowed more", async () => {
      await required();
      task = await server.createSession({ title: "Task" });
      await assert.rejects(required(), {
        code: "not-allowed",
        message: `Task ${task.id.slice(-6)} is allowed more than you are, and a running task can't be limited. Wait for its result, then resume it.`,
      });
    });

    it("isn't refused if the task is gone, which is found out later", async () => {
      await server.deleteSession(task.id);
      await required();
    });

    it("limits a task to what it is allowed itself, once", async () => {
      task = await server.createSession({ title: "Task" });
      await permissions.limitToCaller(task, "general", call);
      const limited = await server.session(task.id);
      assert.deepEqual(limited?.permission, [deny("bash")]);
      assert.deepEqual(kept, [limited]);
      await permissions.limitToCaller(limited, "general", call);
      assert.deepEqual(kept, [limited]);
    });

    it("is refused if it may not launch the task's agent", async () => {
      session = { ...session, permission: [...ALL, deny("task")] };
      await assert.rejects(required(), { code: "not-allowed" });
      await assert.rejects(permissions.limitToCaller(task, "general", call), { code: "not-allowed" });
    });
  });
});
