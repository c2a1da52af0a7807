import { Adoption } from "./adoption.ts";
import { AgentPermissions } from "./agent-permissions.ts";
import { PromptSender } from "./arrival.ts";
import { BudgetGuard } from "./budget-guard.ts";
import { BudgetUse } from "./budget-use.ts";
import { Catalog } from "./catalog.ts";
import { Collisions } from "./collisions.ts";
import { Clearing } from "./clearing.ts";
import { ConfirmedPrompts } from "./confirmed-prompts.ts";
import { Ending } from "./ending.ts";
import type { Disposable } from "./event.ts";
import { ForkBuilder } from "./fork/builder.ts";
import { ForkDelivery } from "./fork/delivery.ts";
import { Launcher } from "./launcher.ts";
import { LiveTranscripts } from "./live-transcripts.ts";
import { Notices } from "./notices.ts";
import { Predictions } from "./predictions.ts";
import type { EnginePorts } from "./ports.ts";
import { LaunchQueue } from "./queue.ts";
import { TaskRegistry } from "./registry.ts";
import { Relaunch } from "./relaunch.ts";
import { Requests } from "./requests.ts";
import { Resume } from "./resume.ts";
import { Steering } from "./steering.ts";
import { Subagents } from "./subagents.ts";
import { Synchronizer } from "./synchronizer.ts";
import { isActive, isQueued, isTakenBack, waitingMessage } from "./task.ts";
import { logTasks } from "./task-log.ts";
import { TaskWorktrees } from "./task-worktrees.ts";
import { TurnWatcher } from "./turns.ts";
import { Waits } from "./waits.ts";
import { WokenTurns } from "./woken-turns.ts";
import { WorkTime } from "./work-time.ts";
import { WorktreeSetups } from "./worktree-setups.ts";
import { WorktreeWork } from "./worktree-work.ts";

export type EngineParts = ReturnType<typeof createParts>;

/** Creates the parts of an engine and connects them. */
export function createParts(ports: EnginePorts) {
  const { server, clock, logger, settings } = ports;
  // State:
  const registry = new TaskRegistry(server, logger, () => clock.now(), ports.tombstones);
  const subagents = new Subagents(ports, registry);
  const requests = new Requests(registry, subagents, clock, logger);
  const catalog = new Catalog(server);
  const permissions = new AgentPermissions(server, catalog, registry);
  const collisions = new Collisions(registry, settings, ports.ignoresCase);
  const setups = new WorktreeSetups(ports, registry);
  const worktrees = new TaskWorktrees(ports, registry, subagents, setups);
  const predictions = new Predictions(ports, registry, worktrees);
  const work = new WorkTime(registry, requests, clock, logger);
  const waits = new Waits(registry, requests, clock, logger);
  const budget = new BudgetUse(registry, work, clock, settings);
  // The end of turns:
  const confirmed = new ConfirmedPrompts(ports);
  const notices = new Notices(ports, registry, catalog, confirmed, { worktrees, budget });
  const ending = new Ending(ports, registry, notices, work, budget);
  const prompts = new PromptSender(server, clock);
  const turns = new TurnWatcher(ports, registry, prompts, ending);
  const guard = new BudgetGuard(ports, registry, work, budget, ending);
  // The start of turns:
  const queue = new LaunchQueue(ports, registry, setups, ending);
  const forks = new ForkBuilder(ports, registry);
  const forkDelivery = new ForkDelivery(ports, forks, prompts, ending);
  const adoption = new Adoption(ports, registry, subagents, budget, turns);
  const parts = {
    ...ports,
    registry,
    subagents,
    catalog,
    permissions,
    budget,
    confirmed,
    notices,
    prompts,
    turns,
    queue,
    ending,
    worktrees,
  };
  const launcher = new Launcher({ ...parts, forks, forkDelivery });
  const relaunch = new Relaunch(server, launcher, registry, logger);
  const resume = new Resume({ ...parts, adoption });
  const steering = new Steering({ ...parts, resume });
  const woken = new WokenTurns({ ...parts, requests });
  const worktreeWork = new WorktreeWork({ ...parts, git: ports.worktrees, resume, predictions });
  const transcripts = new LiveTranscripts(server, logger);
  const synchronizer = new Synchronizer({
    ...parts,
    requests,
    guard,
    waits,
    collisions,
    predictions,
    resume,
    woken,
    transcripts,
    worktreeWork,
  });
  const clearing = new Clearing({ ...parts, worktreeWork, synchronizer });
  const subscriptions = [
    logTasks(registry, logger),
    registry.onDidFindDiscarded((id) => void launcher.remove(id)),
    registry.onWillLose((entry) => ending.lose(entry)),
    registry.onDidChange(({ id, after }) => {
      const lost = after ? undefined : registry.lost().find(({ record }) => record.id === id);
      if (lost) notices.deliverSoon(lost);
    }),
    registry.onDidChange(({ before, after }) => {
      if (before && isQueued(before) && !(after && isQueued(after))) setups.leave(before.id);
    }),
    registry.onDidChange(({ before, after }) => {
      if (!before || !isActive(before) || (after && isActive(after))) return;
      // Every end frees a slot, and after the last one polling can stop.
      queue.pump();
      turns.watch();
      // A message whose sending just failed is sent again later.
      if (!after || waitingMessage(after) === undefined || isTakenBack(before, after)) return;
      // While disconnected, another engine may have ended the turn and be sending it; if not, the next connect does.
      if (!synchronizer.isConnected) return;
      const ended = registry.entry(after.id);
      // The notice of the end comes first.
      if (ended) void Promise.resolve().then(() => resume.sendWaiting(ended));
    }),
    registry.onDidChange(({ before, after }) => {
      if (before?.notice.state !== "pending" || !after || after.notice.state === "pending") return;
      const told = registry.entry(after.id);
      // The notice may have been in the way of the message.
      if (told?.heldBack) void resume.sendWaiting(told);
    }),
    registry.onDidChange((change) => {
      worktrees.taskChanged(change);
      predictions.taskChanged(change);
    }),
    worktrees.onDidChange(() => predictions.predictSoon()),
    // A task that begins to wait for the user frees its slot.
    requests.onDidChange(() => queue.pump()),
  ];
  /** In the order of disposal. */
  const disposables: readonly Disposable[] = [
    synchronizer,
    ...subscriptions,
    turns,
    guard,
    work,
    waits,
    queue,
    predictions,
    worktrees,
    setups,
    woken,
    notices,
    resume,
    transcripts,
    requests,
    subagents,
    registry,
  ];
  return {
    ...parts,
    setups,
    worktreeWork,
    requests,
    work,
    guard,
    collisions,
    predictions,
    forks,
    adoption,
    clearing,
    launcher,
    relaunch,
    resume,
    steering,
    transcripts,
    synchronizer,
    disposables,
  };
}
