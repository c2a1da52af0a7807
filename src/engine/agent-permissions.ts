import type { Catalog } from "./catalog.ts";
import { AskFirst, Refusal } from "./errors.ts";
import { evaluate, isWithin, restrict, sharedDenials } from "./permissions.ts";
import type { AgentServer } from "./ports.ts";
import { sentence } from "./sentence.ts";
import type { AgentInfo, PermissionRule, Session } from "./server-model.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { isRunning, type Subagent } from "./subagent.ts";
import { isStopped, shortID, type TaskRecord } from "./task.ts";

/** An agent's call that starts work in another session. */
export interface AgentCall {
  readonly sessionID: string;
  /** The message that made the call. */
  readonly messageID?: string | undefined;
  /** The agent that made the call. By default, that of its message. */
  readonly agent?: string | undefined;
  /** Stays the same when the call is repeated. */
  readonly callID?: string | undefined;
  /** The agents that its rules ask the user about, and that the user permitted. */
  readonly permitted?: readonly string[] | undefined;
}

type Rules = readonly PermissionRule[];

/** The permission to launch an agent; its patterns are names of agents. */
const LAUNCH = "task";

/** The rules of a session in which no agent has worked yet. */
const NO_LIMITS: Rules = [{ permission: "*", pattern: "*", action: "allow" }];

const NOTHING_ALLOWED: Rules = [{ permission: "*", pattern: "*", action: "deny" }];

/** Keeps tasks from being allowed more than the agents that start them. */
export class AgentPermissions {
  /** Whether the registry has each session as it is now. */
  private isCurrent = false;

  constructor(
    private readonly server: Pick<AgentServer, "message" | "session" | "restrict">,
    private readonly catalog: Pick<Catalog, "all">,
    private readonly registry: Pick<TaskRegistry, "session" | "applySession">,
  ) {}

  /** From now on, the registry hears of each change. */
  connect(): void {
    this.isCurrent = true;
  }

  disconnect(): void {
    this.isCurrent = false;
  }

  /** The agent that makes a call, with its current permissions. */
  async callingAgent({ sessionID, messageID, agent, permitted = [] }: AgentCall): Promise<CallingAgent> {
    const [agents, session, message] = await Promise.all([
      this.catalog.all(),
      this.session(sessionID),
      agent === undefined && messageID !== undefined ? this.server.message(sessionID, messageID) : undefined,
    ]);
    const name = agent ?? message?.info.agent ?? session?.agent;
    const ofAgent = name === undefined ? NO_LIMITS : agents.find((one) => one.name === name)?.permission;
    const ofSession = session ? (session.permission ?? NOTHING_ALLOWED) : [];
    return new CallingAgent(name ?? "", [...(ofAgent ?? []), ...ofSession], agents, permitted);
  }

  /**
   * Restricts a task to what the agent that makes a call is allowed, whatever the task was allowed before. For the next
   * turn: OpenCode reads a session's rules when a turn begins.
   * @param session the task's session, as it is on the server
   * @param isElsewhere whether it works in a worktree
   */
  async limitToCaller(session: Session, agent: string, call: AgentCall, isElsewhere = false): Promise<void> {
    const limits = await this.missingLimits(session, agent, call, isElsewhere);
    if (limits.length > 0) this.registry.applySession(await this.server.restrict(session.id, limits));
  }

  /** Throws a {@link Refusal} if a running task is allowed more than the agent that makes a call. */
  async requireNoMoreThanCaller(
    { id, agent }: Pick<TaskRecord, "id" | "agent">,
    call: AgentCall,
  ): Promise<void> {
    const session = await this.server.session(id);
    if (!session || (await this.missingLimits(session, agent, call)).length === 0) return;
    throw new Refusal(
      "not-allowed",
      sentence(
        "Task {0} is allowed more than you are, and a running task can't be limited. Wait for its result, then resume it.",
        shortID(id),
      ),
    );
  }

  /** The rules without which a task would be allowed more than the agent that makes a call. */
  private async missingLimits(
    { permission }: Session,
    agent: string,
    call: AgentCall,
    isElsewhere = false,
  ): Promise<Rules> {
    const caller = await this.callingAgent(call);
    caller.requireMayLaunch(agent);
    // What can't be understood may allow everything.
    const present = permission ?? NO_LIMITS;
    return isElsewhere ? caller.limitsElsewhere(agent, present) : caller.limits(agent, present);
  }

  private async session(id: string): Promise<Session | undefined> {
    return (this.isCurrent ? this.registry.session(id) : undefined) ?? this.server.session(id);
  }
}

/**
 * Takes note of what a stop of the work that makes a call would look like. The function that it returns throws a
 * {@link Refusal} if it was stopped since, or failed: what it was about to start would no longer be stopped with it.
 * @param isAgent whether the agent of the session makes the call, which ends with its turn
 */
export function watchForStop(
  { registry, subagents }: WatchedParts,
  callingSessionID: string,
  isAgent: boolean,
): () => void {
  const isOver = (id: string): boolean => {
    const entry = registry.entry(id);
    if (entry) return isStopped(entry.record);
    const subagent = isAgent && id === callingSessionID ? subagents.get(id) : undefined;
    return subagent !== undefined && !isRunning(subagent);
  };
  const over = (): readonly string[] =>
    [callingSessionID, ...registry.above(callingSessionID)].filter(isOver);
  const before = new Set(over());
  return () => {
    if (over().every((id) => before.has(id))) return;
    throw new Refusal(
      "wrong-status",
      sentence("Nothing was started, because your task was stopped or failed."),
    );
  };
}

interface WatchedParts {
  readonly registry: { above(id: string): Iterable<string>; entry(id: string): Entry | undefined };
  readonly subagents: { get(id: string): Subagent | undefined };
}

/** An agent that delegates work to other agents, which must not be allowed more than it is. */
export class CallingAgent {
  constructor(
    private readonly name: string,
    private readonly rules: Rules,
    private readonly agents: readonly AgentInfo[],
    private readonly permitted: readonly string[],
  ) {}

  /** Throws a {@link Refusal} if it may not delegate to this agent. */
  requireMayLaunch(agent: string): void {
    const action = evaluate(this.rules, LAUNCH, agent);
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
   * The rules that a session needs so that an agent working in it is allowed no more than the calling one.
   * @param agent the agent that will work in the session
   * @param present the session's rules so far
   */
  limits(agent: string, present: Rules = []): Rules {
    const own = [...this.rulesOf(agent), ...present];
    const limits = restrict(this.rules, own);
    if (this.tooStrong(own, present, limits).length === 0) return limits;
    // Subagents inherit the denials of their parent session, but not those of its agent.
    const denials = sharedDenials(this.rules, [...own, ...limits]);
    const all = [...limits, ...denials];
    const refused = this.tooStrong(own, present, all);
    return [
      ...all,
      ...refused.map((name) => ({ permission: LAUNCH, pattern: name, action: "deny" as const })),
    ];
  }

  /**
   * Like {@link limits}, for a session in a worktree: that may have another configuration than the folder, in which an
   * agent of this name is allowed more. Nothing of the folder's agent is relaxed.
   */
  limitsElsewhere(agent: string, present: Rules = []): Rules {
    const limits = restrict(this.rules, [...NO_LIMITS, ...present]);
    const known = [...this.rulesOf(agent), ...present];
    const kept = restrict(known, [...known, ...limits]);
    return [...limits, ...kept, ...this.limits(agent, [...present, ...limits, ...kept])];
  }

  /** The agents that, as OpenCode's own subagents of a session with these rules, would exceed the calling agent. */
  private tooStrong(own: Rules, present: Rules, limits: Rules): readonly string[] {
    // The only rules that a subagent's session inherits from its parent session.
    const inherited = [...present, ...limits].filter(
      ({ permission, action }) => permission === "external_directory" || action === "deny",
    );
    return this.agents
      .filter(({ permission }) => !isWithin(this.rules, [...permission, ...inherited]))
      .map(({ name }) => name)
      .filter((name) => evaluate([...own, ...limits], LAUNCH, name) !== "deny");
  }

  private launchable(): readonly string[] {
    return this.agents
      .filter(({ mode, hidden }) => mode !== "primary" && !hidden)
      .map(({ name }) => name)
      .filter((name) => evaluate(this.rules, LAUNCH, name) !== "deny");
  }

  private rulesOf(agent: string): Rules {
    // What is unknown may be allowed everything.
    return this.agents.find(({ name }) => name === agent)?.permission ?? NO_LIMITS;
  }
}
