import assert from "node:assert/strict";
import { Catalog } from "../../../src/engine/catalog.ts";
import type { AgentInfo, ModelInfo } from "../../../src/engine/server-model.ts";
import { MemoryServer } from "../../support/memory-server.ts";

describe("The agents and models of a server", () => {
  let server: MemoryServer;
  let agents: AgentInfo[];
  let models: ModelInfo[];
  let asked: string[];
  let failures: number;
  let catalog: Catalog;

  const agent = (name: string, changed: Partial<AgentInfo> = {}): AgentInfo => ({
    ...{ name, mode: "subagent", hidden: false, permission: [] },
    ...changed,
  });
  const model = (providerID: string, modelID: string): ModelInfo => ({
    ...{ ref: { providerID, modelID }, name: modelID, provider: providerID },
  });

  beforeEach(() => {
    server = new MemoryServer();
    agents = [agent("build", { mode: "primary" }), agent("title", { hidden: true }), agent("general")];
    models = [model("acme", "small"), model("other", "large")];
    asked = [];
    failures = 0;
    const answer = async <T>(what: string, value: () => T): Promise<T> => {
      asked.push(what);
      if (failures-- > 0) throw new Error("Not now.");
      return value();
    };
    server.agents = async () => answer("agents", () => agents);
    server.models = async () => answer("models", () => models);
    catalog = new Catalog(server);
  });

  const names = (list: readonly AgentInfo[]): readonly string[] => list.map(({ name }) => name);

  it("are read once, until they are forgotten", async () => {
    assert.deepEqual(names(await catalog.agents()), ["build", "general"]);
    assert.deepEqual(names(await catalog.all()), ["build", "title", "general"]);
    assert.deepEqual(await catalog.models(), models);
    await catalog.models();
    assert.deepEqual(asked, ["agents", "models"]);
    catalog.forget();
    await Promise.all([catalog.all(), catalog.models()]);
    assert.deepEqual(asked, ["agents", "models", "agents", "models"]);
  });

  it("are read again if that failed", async () => {
    failures = 2;
    await assert.rejects(catalog.agents(), /Not now/);
    await assert.rejects(catalog.models(), /Not now/);
    assert.deepEqual(names(await catalog.agents()), ["build", "general"]);
    assert.deepEqual(await catalog.models(), models);
  });

  it("a person can launch every agent that isn't hidden, an agent only those made for tasks", async () => {
    assert.equal((await catalog.agent(undefined, "person")).name, "build");
    assert.equal((await catalog.agent("build", "person")).name, "build");
    assert.equal((await catalog.agent(undefined, "agent")).name, "general");
    await assert.rejects(catalog.agent("build", "agent"), {
      code: "unknown-agent",
      message: 'Only the user can launch agent "build". Available agents: general.',
    });
    await assert.rejects(catalog.agent("title", "person"), {
      message:
        'Agent "title" doesn\'t exist. Available agents: build, general. A new one is found once OpenCode is restarted.',
    });
  });

  it("if agents can launch none, they aren't told that the server has none", async () => {
    agents = [agent("build", { mode: "primary" })];
    const message =
      'There is no agent that agents can launch. Add one with the mode "subagent" or "all" to OpenCode\'s configuration, then restart OpenCode.';
    for (const wanted of [undefined, "build", "other"])
      await assert.rejects(catalog.agent(wanted, "agent"), { code: "unknown-agent", message });
  });

  it("an agent that was configured since is found, at the price of one more request", async () => {
    await catalog.agents();
    agents = [...agents, agent("late")];
    assert.equal((await catalog.agent("late", "agent")).name, "late");
    assert.deepEqual(asked, ["agents", "agents"]);
    await catalog.agent("late", "person");
    assert.equal(asked.length, 2);
  });

  it("without any agent, it says what to do", async () => {
    agents = [];
    await assert.rejects(catalog.agent(undefined, "person"), {
      code: "unknown-agent",
      message: "The server has no agents. Add one to OpenCode's configuration, then restart OpenCode.",
    });
  });

  it("a model that the server doesn't offer is refused with ten that it does, after one more request", async () => {
    await catalog.checkModel({ providerID: "acme", modelID: "small" });
    assert.deepEqual(asked, ["models"]);
    models = Array.from({ length: 12 }, (_, index) => model("acme", `m${index}`));
    await catalog.checkModel({ providerID: "acme", modelID: "m11" });
    assert.deepEqual(asked, ["models", "models"]);
    const available = Array.from({ length: 10 }, (_, index) => `acme/m${index}`).join(", ");
    for (const [providerID, modelID] of [
      ["other", "m1"],
      ["acme", "small"],
    ] as const)
      await assert.rejects(catalog.checkModel({ providerID, modelID }), {
        code: "unknown-model",
        message: `Model "${providerID}/${modelID}" doesn't exist. Available models: ${available}. A new one is found once OpenCode is restarted.`,
      });
  });
});
