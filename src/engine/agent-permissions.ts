import type { Catalog } from "./catalog.ts";
import { AskFirst, Refusal } from "./errors.ts";
import { evaluate, isWithin, restrict, sharedDenials } from "./permissions.ts";
import type { AgentServer } from "./ports.ts";
import { sentence } from "./sentence.ts";
import type { AgentInfo, PermissionRule } from "./server-model.ts";

/** An agent's call that starts work in another session. */
export interface AgentCall {
  readonly sessionID: string;
  /** The message that made the call. */
  readonly messageID?: string | undefined;
  /** The same when the call is made again. */
  readonly callID?: string | undefined;
  /** The agents that the user let it launch, where its `task` rules ask. */
  readonly permitted?: readonly string[] | undefined;
}

type Rules = readonly PermissionRule[];

/** Of a session in which no agent has worked yet. */
const NO_LIMITS: Rules = [{ permission: "*", pattern: "*", action: "allow" }];

/** Reads what the agent of a call is allowed now. */
export async function readCallingAgent(
  { sessionID, messageID, permitted = [] }: AgentCall,
  server: Pick<AgentServer, "message" | "permissions" | "session">,
  catalog: Pick<Catalog, "current">,
): Promise<CallingAgent> {
  const [agents, ofSession, message] = await Promise.all([
    catalog.current(),
    server.permissions(sessionID),
    messageID === undefined ? undefined : server.message(sessionID, messageID),
  ]);
  const name = message?.info.agent ?? (await server.session(sessionID))?.agent;
  const ofAgent = name === undefined ? NO_LIMITS : agents.find((agent) => agent.name === name)?.permission;
  return new CallingAgent(name ?? "", [...(ofAgent ?? []), ...ofSession], agents, permitted);
}

/** An agent that hands work to others, which are allowed no more than it is. */
export class CallingAgent {
  constructor(
    private readonly name: string,
    private readonly rules: Rules,
    private readonly agents: readonly AgentInfo[],
    private readonly permitted: readonly string[],
  ) {}

  /** Throws a {@link Refusal} where it may not hand work to this agent. */
  requireMayLaunch(agent: string): void {
    const action = evaluate(this.rules, "task", agent);
    if (action === "allow") return;
    if (action === "deny")
      throw new Refusal(
        "not-allowed",
        sentence(
          'The permissions of agent "{0}" in OpenCode don\'t let it launch "{1}"; it can launch: {2}.',
          this.name,
          agent,
          this.launchable().join(", ") || sentence("none"),
        ),
      );
    if (this.permitted.includes(agent)) return;
    throw new AskFirst(
      agent,
      sentence('Agent "{0}" needs the user\'s permission to launch "{1}".', this.name, agent),
    );
  }

  /**
   * What a session's rules need so that whoever works in it as this agent is allowed no more than the calling one.
   * @param present the session's rules so far
   */
  limits(agent: string, present: Rules = []): Rules {
    const own = [...this.rulesOf(agent), ...present];
    const limits = restrict(this.rules, own);
    if (this.tooStrong(own, present, limits).length === 0) return limits;
    // Subagents inherit what their parent's session denies, not what its agent does.
    const denials = sharedDenials(this.rules, [...own, ...limits]);
    const all = [...limits, ...denials];
    const refused = this.tooStrong(own, present, all);
    return [
      ...all,
      ...refused.map((name) => ({ permission: "task", pattern: name, action: "deny" as const })),
    ];
  }

  /** The agents that would be allowed more than the calling one as OpenCode's own subagents of a session with these rules. */
  private tooStrong(own: Rules, present: Rules, limits: Rules): readonly string[] {
    // All that a subagent's session gets of its parent's rules.
    const inherited = [...present, ...limits].filter(
      ({ permission, action }) => permission === "external_directory" || action === "deny",
    );
    return this.agents
      .filter(({ permission }) => !isWithin(this.rules, [...permission, ...inherited]))
      .map(({ name }) => name)
      .filter((name) => evaluate([...own, ...limits], "task", name) !== "deny");
  }

  private launchable(): readonly string[] {
    return this.agents
      .filter(({ mode, hidden }) => mode !== "primary" && !hidden)
      .map(({ name }) => name)
      .filter((name) => evaluate(this.rules, "task", name) !== "deny");
  }

  private rulesOf(agent: string): Rules {
    return this.agents.find(({ name }) => name === agent)?.permission ?? [];
  }
}
