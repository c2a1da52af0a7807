import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { PendingRequest, PermissionRule } from "../../src/engine/server-model.ts";
import { shortID, type Task } from "../../src/engine/task.ts";
import {
  callTool,
  openAgentWindow,
  startAgentServer,
  startTurn,
  type AgentServer,
  type AgentWindow,
  type MadeCall,
  type ScriptedTurn,
} from "../support/agent-tools.ts";
import { ended } from "../support/engine.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

type ToolCalls = NonNullable<ScriptStep["tools"]>;

interface Stored {
  readonly info: { readonly role: string; readonly time: { readonly completed?: number } };
}

interface Request {
  readonly id: string;
  readonly sessionID: string;
  readonly permission: string;
  readonly patterns: readonly string[];
}

describe("A task has at most the permissions of the agent that launched it", () => {
  let model: ScriptedModel;
  let server: AgentServer;
  let window: AgentWindow;
  const settings: { -readonly [K in keyof EngineSettings]?: EngineSettings[K] } = {};
  let files = 0;

  setUp(async (start) => {
    model = await start.model();
    server = await startAgentServer({
      model,
      config: {
        // Tasks here have subagents, two levels deep.
        subagent_depth: 3,
        agent: {
          worker: { mode: "subagent", description: "Works." },
          trusted: { mode: "subagent", description: "Works.", permission: { external_directory: "allow" } },
          harmless: { mode: "subagent", description: "Looks.", permission: { edit: "deny" } },
          chief: { mode: "primary", permission: { task: { "*": "deny", explore: "allow" } } },
          careful: { mode: "primary", permission: { bash: "ask" } },
          shell: { mode: "primary", permission: { bash: { "*": "ask", "printf secret*": "deny" } } },
          polite: { mode: "primary", permission: { task: "ask" } },
        },
      },
    });
    start.stop(() => server.stop());
    window = await openAgentWindow(server, { settings });
    start.stop(() => window.dispose());
  });

  beforeEach(() => {
    settings.maxDepth = 1;
    settings.maxConcurrentTasks = 0;
    settings.fork = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" };
  });

  const read = async (path: string): Promise<unknown> => (await server.fetch(path)).json();

  async function post(path: string, body: unknown): Promise<unknown> {
    const init = { method: "POST", headers: { "content-type": "application/json" } };
    return (await server.fetch(path, { ...init, body: JSON.stringify(body) })).json();
  }

  async function createParent(...permission: readonly PermissionRule[]): Promise<string> {
    return ((await post("/session", { title: "Parent", permission })) as { id: string }).id;
  }

  const denied = (permission: string): PermissionRule => ({ permission, pattern: "*", action: "deny" });

  /** A file that doesn't exist, in the folder that the agents work in. */
  const newFile = (): string => join(server.directory, `written-${++files}.txt`);

  const writing = (filePath: string): ToolCalls => [{ name: "write", args: { filePath, content: "x" } }];

  const running = (command: string): ToolCalls => [
    { name: "bash", args: { command, description: "Runs a command" } },
  ];

  const does = (tools: ToolCalls): string =>
    script([...(tools.length > 0 ? [{ tools }] : []), { text: "Done." }]);

  const launching = (tools: ToolCalls, more: Readonly<Record<string, unknown>> = {}) => ({
    agent: "worker",
    prompt: does(tools),
    ...more,
  });

  const task = (parent: string, agent: string, args: Readonly<Record<string, unknown>>): Promise<MadeCall> =>
    callTool(server, parent, "asyncagents_task", args, agent);

  /** The newest task of a session, once it has ended. */
  async function endOf(parent: string): Promise<Task> {
    const newest = window.engine.list(parent).at(-1) ?? assert.fail("There is no task");
    return ended(window, newest.id);
  }

  /** Has the agent launch a task that does this; gives the task once it has ended. */
  async function hasDone(
    parent: string,
    agent: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<Task> {
    const call = await task(parent, agent, args);
    assert.match(call.text, /^Launched task/);
    return told(await endOf(parent));
  }

  const noticed = (id: string): Promise<unknown> =>
    until("the notice", () => window.engine.get(id)?.notice.state === "delivered");

  /** Waits until the parent was notified and has answered. */
  async function told(task: Task): Promise<Task> {
    const { id, parentSessionID: parent } = task;
    await noticed(id);
    await until("the answer to it", async () => {
      const last = ((await read(`/session/${parent}/message?limit=1`)) as readonly Stored[])[0]?.info;
      const isBusy = parent in ((await read("/session/status")) as object);
      return !isBusy && last?.role === "assistant" && last.time.completed !== undefined;
    });
    return task;
  }

  const launchByPerson = async (parent: string, agent: string, tools: ToolCalls): Promise<Task> => {
    const input = { prompt: does(tools), agent, parentSessionID: parent };
    const { id } = await window.engine.launch({ ...input, launchedBy: "person" });
    const task = await ended(window, id);
    // Otherwise a notice that arrives with the next prompt is the newest message, and determines the turn's agent.
    await noticed(id);
    return task;
  };

  const calls = async (sessionID: string, tool: string): Promise<readonly string[]> => {
    const messages = (await read(`/session/${sessionID}/message`)) as readonly {
      readonly parts: readonly {
        type: string;
        tool?: string;
        state?: { status: string; output?: string; error?: string };
      }[];
    }[];
    return messages
      .flatMap(({ parts }) => parts)
      .filter((part) => part.type === "tool" && part.tool === tool)
      .map(({ state }) => `${state?.status}: ${state?.output ?? state?.error ?? ""}`);
  };

  const asked = async (sessionID: string): Promise<Request> =>
    until("the request", async () =>
      ((await read("/permission")) as readonly Request[]).find((one) => one.sessionID === sessionID),
    );

  const reply = (request: Request, answer: "once" | "reject"): Promise<unknown> =>
    post(`/permission/${request.id}/reply`, { reply: answer });

  /** The IDs of all sessions. */
  const sessions = async (): Promise<readonly string[]> =>
    ((await read("/session?limit=1000")) as readonly { id: string }[]).map(({ id }) => id).sort();

  describe("a Plan agent", () => {
    it("[PRM-1] launches a task that writes no file", async () => {
      const [parent, file] = [await createParent(), newFile()];
      await hasDone(parent, "plan", launching(writing(file)));
      assert.equal(existsSync(file), false);
    });

    it("[PRM-1] unlike a build agent, whose task writes the file", async () => {
      const [parent, file] = [await createParent(), newFile()];
      await hasDone(parent, "build", launching(writing(file)));
      assert.equal(existsSync(file), true);
    });

    it("[PRM-1] forks a task that writes no file, with the strategies replay and fork", async () => {
      for (const strategy of ["replay", "fork"] as const) {
        settings.fork = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy };
        const [parent, file] = [await createParent(), newFile()];
        const forked = await hasDone(parent, "plan", launching(writing(file), { fork: true }));
        assert.equal(forked.isForked, true);
        assert.equal((await calls(forked.id, "write")).length, 1, strategy);
        assert.equal(existsSync(file), false, strategy);
      }
    });

    it("[PRM-1] resumes a task that then writes no file, whoever launched it", async () => {
      for (const launchedBy of ["person", "agent"] as const) {
        const [parent, file] = [await createParent(), newFile()];
        if (launchedBy === "person") await launchByPerson(parent, "worker", []);
        else await hasDone(parent, "build", launching([]));
        const { id } = await endOf(parent);
        const call = await task(parent, "plan", { resume: id, prompt: does(writing(file)) });
        assert.match(call.text, /^Resumed task/);
        await ended(window, id);
        assert.equal((await calls(id, "write")).length, 1);
        assert.equal(existsSync(file), false, launchedBy);
      }
    });

    it("[PRM-1] sends no message to a running task that is allowed more, but to one that isn't", async () => {
      for (const [launcher, isSent] of [
        ["build", false],
        ["plan", true],
      ] as const) {
        const [parent, file] = [await createParent(), newFile()];
        const gate = `${parent} at work`;
        const prompt = script([{ text: "Begun.", gate }, { text: "Done." }]);
        await task(parent, launcher, { agent: "worker", prompt });
        await model.waitForRequest(({ step }) => step.gate === gate);
        const [{ id }] = window.engine.list(parent) as [Task];
        const call = await task(parent, "plan", { send_to: id, prompt: does(writing(file)) });
        model.release(gate);
        await told(await ended(window, id));
        assert.match(call.text, isSent ? /^Sent/ : /is allowed more than you .*resume it/);
        assert.equal((await calls(id, "write")).length, isSent ? 1 : 0);
        assert.equal(existsSync(file), false, launcher);
      }
    });

    it("[PRM-1] adds no more rules when it resumes a task again", async () => {
      const parent = await createParent();
      const { id } = await hasDone(parent, "build", launching([]));
      const rules = async (): Promise<unknown> =>
        ((await read(`/session/${id}`)) as { permission: unknown }).permission;
      const counts: unknown[] = [await rules()];
      for (const prompt of ["More.", "Still more."]) {
        await task(parent, "plan", { resume: id, prompt });
        await told(await ended(window, id));
        counts.push(await rules());
      }
      assert.notDeepEqual(counts[1], counts[0]);
      assert.deepEqual(counts[2], counts[1]);
    });

    it("[PRM-1] queues a task that writes no file when it starts", async () => {
      settings.maxConcurrentTasks = 1;
      const [parent, file] = [await createParent(), newFile()];
      const input = { agent: "worker", parentSessionID: parent, launchedBy: "person" } as const;
      const gate = `${parent} first`;
      const first = await window.engine.launch({ ...input, prompt: script([{ text: "Done.", gate }]) });
      const call = await task(parent, "plan", launching(writing(file)));
      assert.match(call.text, /queued/);
      model.release(gate);
      await ended(window, first.id);
      const second = await endOf(parent);
      assert.equal((await calls(second.id, "write")).length, 1);
      assert.equal(existsSync(file), false);
    });

    it("[PRM-1] does not limit what a user launches from its session", async () => {
      const [parent, file] = [await createParent(), newFile()];
      await (await startTurn(server, parent, [{ text: "Planned." }], "plan")).ended();
      await launchByPerson(parent, "worker", writing(file));
      assert.equal(existsSync(file), true);
    });

    it("[PRM-1] launches no agent that its task rules deny, and none that is not a subagent", async () => {
      const parent = await createParent();
      const before = await sessions();
      const general = await task(parent, "plan", launching([], { agent: "general" }));
      assert.match(
        general.text,
        /The permissions of agent "plan" in OpenCode don't let it launch "general"; it can launch: .*worker/,
      );
      const none = await task(parent, "plan", launching([], { agent: undefined }));
      assert.match(none.text, /don't let it launch "general"/);
      const build = await task(parent, "plan", launching([], { agent: "build" }));
      assert.match(build.text, /Only the user can launch agent "build"/);
      assert.deepEqual(await sessions(), before);
    });
  });

  describe("two levels deep", () => {
    beforeEach(() => (settings.maxDepth = 2));

    /** A task that launches one itself, or has OpenCode's own subagent do it. */
    const launchingOne = (file: string, agent: string): ToolCalls => [
      { name: "asyncagents_task", args: launching(writing(file), { agent }) },
    ];

    it("[PRM-1] the task of a Plan agent's task writes no file", async () => {
      for (const agent of ["worker", "harmless"]) {
        const [parent, file] = [await createParent(), newFile()];
        const child = await hasDone(parent, "plan", launching(launchingOne(file, "worker"), { agent }));
        assert.equal((await endOf(child.id)).status, "completed");
        assert.equal(existsSync(file), false, agent);
      }
    });

    it("[PRM-1] OpenCode's own subagent of a Plan agent's task writes no file", async () => {
      for (const agent of ["worker", "harmless"]) {
        const [parent, file] = [await createParent(), newFile()];
        const delegating: ToolCalls = [
          {
            name: "task",
            args: { description: "Write", subagent_type: "worker", prompt: does(writing(file)) },
          },
        ];
        const child = await hasDone(parent, "plan", launching(delegating, { agent }));
        assert.equal((await calls(child.id, "task")).length, 1);
        assert.equal(existsSync(file), false, agent);
      }
    });

    it("[PRM-1] OpenCode's own subagent of a build agent's task writes a file", async () => {
      const [parent, file] = [await createParent(), newFile()];
      const delegating: ToolCalls = [
        {
          name: "task",
          args: { description: "Write", subagent_type: "general", prompt: does(writing(file)) },
        },
      ];
      const child = await hasDone(parent, "build", launching(delegating));
      assert.match((await calls(child.id, "task"))[0] ?? "", /^completed/);
      assert.equal(existsSync(file), true);
    });
  });

  it("[PRM-1] a session's bash: deny applies to what its agent launches, forks and resumes", async () => {
    const parent = await createParent(denied("bash"));
    const earlier = await launchByPerson(parent, "worker", []);
    const launched = await hasDone(parent, "build", launching(running("echo ran")));
    const forked = await hasDone(parent, "build", launching(running("echo ran"), { fork: true }));
    await task(parent, "build", { resume: earlier.id, prompt: does(running("echo ran")) });
    await ended(window, earlier.id);
    for (const { id } of [launched, forked, earlier])
      assert.deepEqual(
        (await calls(id, "bash")).filter((call) => call.startsWith("completed")),
        [],
      );
    const free = await createParent();
    const { id } = await hasDone(free, "build", launching(running("echo ran")));
    assert.match((await calls(id, "bash")).join(), /^completed: ran/);
  });

  it("[PRM-1] a session's external_directory: deny applies, even if the launched agent is allowed it", async () => {
    const outside = join(tempDir("outside"), "secret.txt");
    writeFileSync(outside, "A secret.");
    const reading: ToolCalls = [{ name: "read", args: { filePath: outside } }];
    const parent = await createParent(denied("external_directory"));
    const { id } = await hasDone(parent, "build", launching(reading, { agent: "trusted" }));
    assert.match((await calls(id, "read")).join(), /^error: /);
    const byPerson = await launchByPerson(parent, "trusted", reading);
    assert.match((await calls(byPerson.id, "read")).join(), /^completed: [^]*A secret/);
  });

  it("[PRM-1] task rules that allow one agent apply to launches, forks and resumes; nothing is created", async () => {
    const parent = await createParent();
    const earlier = await launchByPerson(parent, "worker", []);
    const before = await sessions();
    for (const args of [
      launching([]),
      launching([], { agent: undefined }),
      launching([], { fork: true }),
      { resume: earlier.id, prompt: "More." },
    ]) {
      const { text } = await task(parent, "chief", args);
      assert.match(
        text,
        /The permissions of agent "chief" in OpenCode don't let it launch "\w+"; it can launch: explore\./,
      );
    }
    assert.deepEqual(await sessions(), before);
    assert.equal(window.engine.get(earlier.id)?.resumeCount, 0);
    await hasDone(parent, "chief", launching([], { agent: "explore" }));
  });

  it("[PRM-1] if the agent must ask, the task that it launches asks", async () => {
    const parent = await createParent();
    const call = await task(parent, "careful", launching(running("echo ran")));
    assert.match(call.text, /^Launched task/);
    const [{ id } = assert.fail()] = window.engine.list(parent);
    const request = await asked(id);
    assert.equal(request.permission, "bash");
    assert.equal(window.engine.get(id)?.status, "running");
    await reply(request, "once");
    await ended(window, id);
    assert.match((await calls(id, "bash")).join(), /^completed: ran/);
  });

  describe("an agent whose task rules are set to ask", () => {
    const startLaunch = (parent: string): Promise<ScriptedTurn> => {
      const tools = [{ name: "asyncagents_task", args: launching([]) }];
      return startTurn(server, parent, [{ tools }, { text: "Seen." }], "polite");
    };

    it("[PRM-1] launches once the user allows it", async () => {
      const parent = await createParent();
      const turn = await startLaunch(parent);
      const request = await asked(parent);
      assert.deepEqual([request.permission, request.patterns], ["task", ["worker"]]);
      assert.deepEqual(window.engine.list(parent), []);
      await reply(request, "once");
      const [call] = await turn.ended();
      assert.match(call?.text ?? "", /^Launched task/);
      await endOf(parent);
    });

    it("[PRM-1] launches nothing if the user rejects it", async () => {
      const parent = await createParent();
      const turn = await startLaunch(parent);
      await reply(await asked(parent), "reject");
      await turn.ended();
      assert.deepEqual(window.engine.list(parent), []);
    });
  });

  describe("an answer of the user", () => {
    const launch = async (agent: string, steps: readonly ScriptStep[]): Promise<string> => {
      const parentSessionID = await createParent();
      const input = { prompt: script(steps), agent, parentSessionID };
      return (await window.engine.launch({ ...input, launchedBy: "person" })).id;
    };

    const requests = (id: string, count: number): Promise<readonly PendingRequest[]> =>
      until("the requests", () => {
        const open = window.engine.pendingRequests(id);
        return open.length === count && open;
      });

    it("that always allows prevails over the rules that deny, as is said where it is given", async () => {
      const id = await launch("shell", [
        { tools: running("printf secret") },
        { tools: running("printf open") },
        { tools: running("printf secret") },
        { text: "Done." },
      ]);
      const [request = assert.fail()] = await requests(id, 1);
      assert.deepEqual(request.type === "permission" && request.always, ["printf *"]);
      await window.engine.answer(request, { type: "permission", reply: "always" });
      await ended(window, id);
      const [first, ...others] = await calls(id, "bash");
      assert.match(first ?? "", /^error: /);
      assert.deepEqual(
        others.map((one) => /^completed: (\w+)/.exec(one)?.[1]),
        ["open", "secret"],
      );
    });

    it("with a message waits until the agent would read it: while it waits for more, it would be stopped", async () => {
      const tools = [...running("echo one"), ...running("echo two")];
      const id = await launch("careful", [{ tools }, { text: "Another way." }]);
      const [first = assert.fail(), second = assert.fail()] = await requests(id, 2);
      const rejection = { type: "permission", reply: "reject", message: "Use pnpm." } as const;
      await assert.rejects(window.engine.answer(first, rejection), { code: "wrong-status" });
      await window.engine.answer(second, { type: "permission", reply: "once" });
      await window.engine.answer(first, rejection);
      assert.equal((await ended(window, id)).status, "completed");
      assert.match((await calls(id, "bash")).join("\n"), /Use pnpm\./);
    });
  });

  it("[PRM-1] when OpenCode's configuration has changed, what is allowed now applies", async () => {
    const parent = await createParent();
    const [before, after] = [newFile(), newFile()];
    await hasDone(parent, "build", launching(writing(before)));
    /** OpenCode loads the folder again, which ends the connection. */
    const reload = async (): Promise<void> => {
      let isConnected = false;
      const connected = window.connection.onDidConnect(() => void (isConnected = true));
      await post("/instance/dispose", {});
      await until("the connection", () => isConnected);
      connected.dispose();
    };
    const configuration = join(server.directory, "opencode.json");
    writeFileSync(configuration, JSON.stringify({ agent: { build: { permission: { edit: "deny" } } } }));
    try {
      await reload();
      await hasDone(parent, "build", launching(writing(after)));
      assert.deepEqual([existsSync(before), existsSync(after)], [true, false]);
    } finally {
      rmSync(configuration);
      await reload();
    }
  });

  it("[PRM-1] agents can read, cancel, list, clear and resume only tasks of their own session", async () => {
    const [owner, stranger] = [await createParent(), await createParent()];
    const gate = `${owner} work`;
    await task(owner, "build", { agent: "worker", prompt: script([{ text: "Done.", gate }]) });
    const [{ id, batchID } = assert.fail()] = window.engine.list(owner);
    for (const [name, args] of [
      ["asyncagents_output", { task_id: id }],
      ["asyncagents_cancel", { task_id: id }],
      ["asyncagents_cancel", { batch_id: batchID }],
      ["asyncagents_clear", { task_id: id }],
      ["asyncagents_clear", { batch_id: batchID }],
      ["asyncagents_task", { resume: id, prompt: "More." }],
    ] as const) {
      const { status } = await callTool(server, stranger, name, args, "plan");
      assert.equal(status, "error", `${name} ${JSON.stringify(args)}`);
    }
    const listed = await callTool(server, stranger, "asyncagents_list", {}, "plan");
    assert.equal(listed.text, "No background tasks found");
    await callTool(server, stranger, "asyncagents_clear", {}, "plan");
    const left = window.engine.get(id);
    assert.deepEqual([left?.status, left?.clearedAt], ["running", undefined]);
    model.release(gate);
    await told(await ended(window, id));
    assert.match(
      (await callTool(server, owner, "asyncagents_output", { task_id: shortID(id) }, "plan")).text,
      /Result:\n<.+>\nDone\./,
    );
  });
});
