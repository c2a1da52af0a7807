import { Refusal } from "./errors.ts";
import { modelText } from "./model-ref.ts";
import type { AgentServer } from "./ports.ts";
import { sentence, type Text } from "./sentence.ts";
import type { AgentInfo, ModelInfo } from "./server-model.ts";
import { shortID, type ModelRef, type TaskRecord } from "./task.ts";

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
    const [all, available] = [await this.agents(), await choice()];
    throw new Refusal("unknown-agent", noAgent(wanted, all, available));
  }

  /** The agent, unless it is one that only users can launch. */
  async forTasks(wanted: string | undefined): Promise<string | undefined> {
    const agent = (await this.agents()).find(({ name }) => name === wanted);
    return agent?.mode === "primary" ? undefined : wanted;
  }

  /**
   * Throws a {@link Refusal} if the agent or the model of a task is gone: the server would accept a prompt, and fail later.
   * Nothing is known of them if they can't be read.
   * @param by who would resume the task, as only a person can fork it
   */
  async requireStillThere(
    { id, agent, model }: Pick<TaskRecord, "id" | "agent" | "model">,
    by: TaskRecord["launchedBy"],
  ): Promise<void> {
    const [agents, hasModel] = await Promise.all([
      this.all().catch(() => undefined),
      model === undefined || this.has(model).catch(() => true),
    ]);
    if (agents && !agents.some(({ name }) => name === agent))
      throw new Refusal(
        "unknown-agent",
        sentence(
          'Task {0} can\'t be resumed, as agent "{1}" no longer exists. {2}',
          shortID(id),
          agent,
          by === "agent" ? AGENTS_REMEDY : sentence("Fork it with another agent."),
        ),
      );
    if (model && !hasModel)
      throw new Refusal(
        "unknown-model",
        sentence(
          'Task {0} can\'t be resumed, as model "{1}" no longer exists. {2}',
          shortID(id),
          modelText(model),
          by === "agent" ? AGENTS_REMEDY : sentence("Fork it with another model."),
        ),
      );
  }

  /** Throws a {@link Refusal} if the server does not offer this model. */
  async checkModel(wanted: ModelRef): Promise<void> {
    if (await this.has(wanted)) return;
    this.forget();
    if (await this.has(wanted)) return;
    const names = (await this.models()).slice(0, 10).map(({ ref }) => `${ref.providerID}/${ref.modelID}`);
    throw new Refusal(
      "unknown-model",
      sentence(
        'Model "{0}" doesn\'t exist. Available models: {1}. A new one is found once OpenCode is restarted.',
        modelText(wanted),
        names.length === 0 ? sentence("none") : names.join(", "),
      ),
    );
  }

  private async has({ providerID, modelID }: ModelRef): Promise<boolean> {
    const models = await this.models();
    return models.some(({ ref }) => ref.providerID === providerID && ref.modelID === modelID);
  }
}

const AGENTS_REMEDY = sentence("Launch a new task, and put what it needs to know into the prompt.");

/** Why the wanted agent, or any, can't be launched. */
function noAgent(
  wanted: string | undefined,
  all: readonly AgentInfo[],
  available: readonly AgentInfo[],
): Text {
  if (all.length === 0)
    return sentence("The server has no agents. Add one to OpenCode's configuration, then restart OpenCode.");
  if (wanted === undefined || available.length === 0)
    return sentence(
      'There is no agent that agents can launch. Add one with the mode "subagent" or "all" to OpenCode\'s configuration, then restart OpenCode.',
    );
  const names = available.map(({ name }) => name).join(", ");
  return all.some(({ name }) => name === wanted)
    ? sentence('Only the user can launch agent "{0}". Available agents: {1}.', wanted, names)
    : sentence(
        'Agent "{0}" doesn\'t exist. Available agents: {1}. A new one is found once OpenCode is restarted.',
        wanted,
        names,
      );
}
