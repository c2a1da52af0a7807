import { Refusal } from "./errors.ts";
import { modelText } from "./model-ref.ts";
import type { AgentServer } from "./ports.ts";
import { sentence } from "./sentence.ts";
import type { AgentInfo, ModelInfo } from "./server-model.ts";
import type { ModelRef, TaskRecord } from "./task.ts";

/**
 * The agents and models of the server, read once per connection: OpenCode reads its configuration again only when it
 * loads the folder again, which ends the connection.
 */
export class Catalog {
  private agentList: Promise<readonly AgentInfo[]> | undefined;
  private modelList: Promise<readonly ModelInfo[]> | undefined;

  constructor(private readonly server: AgentServer) {}

  /** Drops what was read, as it may be stale. */
  forget(): void {
    this.agentList = undefined;
    this.modelList = undefined;
  }

  /** The agents that a task can run as: the default agent first, then those made for tasks. */
  async agents(): Promise<readonly AgentInfo[]> {
    return (await this.all()).filter(({ hidden }) => !hidden);
  }

  /** All agents, including hidden ones, with their permissions. */
  all(): Promise<readonly AgentInfo[]> {
    return (this.agentList ??= this.server.agents().catch((error: unknown) => {
      this.agentList = undefined;
      throw error;
    }));
  }

  async models(): Promise<readonly ModelInfo[]> {
    this.modelList ??= this.server.models().catch((error: unknown) => {
      this.modelList = undefined;
      throw error;
    });
    return this.modelList;
  }

  /**
   * The wanted agent, or the default one. Agents can launch only agents made for tasks. Throws a {@link Refusal} that
   * lists the available agents if there is no such agent.
   */
  async agent(wanted: string | undefined, launchedBy: TaskRecord["launchedBy"]): Promise<AgentInfo> {
    const choice = async (): Promise<readonly AgentInfo[]> =>
      (await this.agents()).filter(({ mode }) => launchedBy === "person" || mode !== "primary");
    const find = async (): Promise<AgentInfo | undefined> => {
      const agents = await choice();
      return wanted === undefined ? agents[0] : agents.find(({ name }) => name === wanted);
    };
    let agent = await find();
    if (!agent) {
      // The agent may have been configured in the meantime.
      this.forget();
      agent = await find();
    }
    if (agent) return agent;
    const names = (await choice()).map(({ name }) => name).join(", ");
    throw new Refusal(
      "unknown-agent",
      wanted === undefined
        ? sentence("The server has no agents. Configure one in OpenCode.")
        : sentence('Agent "{0}" doesn\'t exist. Available agents: {1}.', wanted, names),
    );
  }

  /** The agent, unless it is one that only users can launch. */
  async forTasks(wanted: string | undefined): Promise<string | undefined> {
    const agent = (await this.agents()).find(({ name }) => name === wanted);
    return agent?.mode === "primary" ? undefined : wanted;
  }

  /** Throws a {@link Refusal} if the server does not offer this model. */
  async checkModel(wanted: ModelRef): Promise<void> {
    const has = async (): Promise<boolean> =>
      (await this.models()).some(
        ({ ref }) => ref.providerID === wanted.providerID && ref.modelID === wanted.modelID,
      );
    if (await has()) return;
    this.forget();
    if (await has()) return;
    const names = (await this.models()).slice(0, 10).map(({ ref }) => `${ref.providerID}/${ref.modelID}`);
    throw new Refusal(
      "unknown-model",
      sentence('Model "{0}" doesn\'t exist. Available models: {1}.', modelText(wanted), names.join(", ")),
    );
  }
}
