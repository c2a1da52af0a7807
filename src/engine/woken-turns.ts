import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import { expectWaking, type Notices } from "./notices.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Requests } from "./requests.ts";
import type { AssistantMessageInfo, MessageInfo, ServerEvent } from "./server-model.ts";
import { shortID, type TaskRecord } from "./task.ts";
import { transition } from "./transitions.ts";
import { TURN_WINDOW } from "./turn.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";
import type { TurnWatcher } from "./turns.ts";

/** How long after a failure it is tried again, in milliseconds. */
const RETRY_MS = 5_000;

interface WokenTurnsParts extends Pick<EnginePorts, "server" | "clock" | "logger"> {
  readonly registry: TaskRegistry;
  readonly requests: Requests;
  readonly notices: Notices;
  readonly turns: TurnWatcher;
  readonly worktrees: TaskWorktrees;
}

/**
 * The notice of a subtask wakes its parent, which can be a task that has completed. Its turn is then followed like that
 * of a follow-up: its requests are shown, its limits apply, and its parent is notified of the new answer.
 */
export class WokenTurns implements Disposable {
  private readonly subscription: Disposable;
  private readonly retries = new Map<Entry, Disposable>();
  private isDisposed = false;

  constructor(private readonly parts: WokenTurnsParts) {
    this.subscription = parts.notices.onDidFindNotice((entry) => void this.look(entry));
  }

  /** Processes an event in the session of a task. */
  accept(entry: Entry, event: ServerEvent): void {
    if (event.type === "message-changed" && isWoken(entry, event.info)) void this.follow(entry, event.info);
  }

  /** Follows the turns that began while there was no connection, and may have ended since. */
  async takeUp(): Promise<void> {
    const { registry } = this.parts;
    const completed = registry.all().filter(({ record }) => record.status === "completed");
    for (const entry of completed)
      for (const id of noticesSince(entry.record, registry)) expectWaking(entry, id);
    const expected = completed.filter(({ wokenBy }) => wokenBy !== undefined && wokenBy.size > 0);
    await Promise.all(expected.map((entry) => this.look(entry)));
  }

  dispose(): void {
    this.subscription.dispose();
    this.isDisposed = true;
    for (const retry of this.retries.values()) retry.dispose();
  }

  /** Reads whether a turn of the task has begun. */
  private async look(entry: Entry): Promise<void> {
    try {
      const messages = await this.parts.server.messages(entry.record.id, TURN_WINDOW);
      const first = messages.map(({ info }) => info).find((info) => isWoken(entry, info));
      if (first?.role === "assistant") await this.follow(entry, first);
    } catch (error) {
      this.failed(entry, error);
    }
  }

  private async follow(entry: Entry, answer: AssistantMessageInfo): Promise<void> {
    const { registry, requests, notices, turns, worktrees } = this.parts;
    try {
      await entry.serial.run(async () => {
        if (!registry.holds(entry) || !isWoken(entry, answer)) return;
        // The record of the earlier end is replaced, so its notice must be delivered first. Where that would remove for good
        // what the user has undone, the parent is told of the next end alone.
        if (!registry.session(entry.record.parentSessionID)?.undoneFrom) await notices.deliverNow(entry);
        const { created: at, parentID: promptMessageID } = answer;
        const { worktree, ...woken } = transition(entry.record, { type: "resume", at, promptMessageID });
        const isGone = worktree !== undefined && (await worktrees.isGoneFor(entry.record.id));
        await registry.storeThenShow(entry, {
          ...woken,
          // What it does now can be seen, and be decided on, again.
          clearedAt: undefined,
          worktree: isGone ? worktree : worktree && { ...worktree, outcome: undefined },
          notice: { state: "none" },
          retrievedAt: undefined,
        });
        entry.wokenBy = new Set([...(entry.wokenBy ?? [])].filter((id) => id !== promptMessageID));
        for (const request of requests.all().filter(({ sessionID }) => sessionID === entry.record.id)) {
          const event = { type: "request-asked", request } as const;
          turns.accept(entry, event);
          requests.accept(event);
        }
        turns.follow(entry);
      });
    } catch (error) {
      this.failed(entry, error);
    }
  }

  /** Tries again later: the task may wait for a user, so that nothing else happens in its session. */
  private failed(entry: Entry, error: unknown): void {
    this.parts.logger.warn(
      `Couldn't follow task ${shortID(entry.record.id)}, which goes on: ${messageOf(error)}`,
    );
    if (this.isDisposed || this.retries.has(entry)) return;
    const look = (): void => {
      this.retries.delete(entry);
      void this.look(entry);
    };
    this.retries.set(entry, this.parts.clock.after(RETRY_MS, look));
  }
}

/** Whether this message answers the notice of a subtask, after the task had completed. */
function isWoken({ record, wokenBy }: Entry, info: MessageInfo): info is AssistantMessageInfo {
  return (
    record.status === "completed" &&
    info.role === "assistant" &&
    info.id !== record.finalMessageID &&
    info.created >= (record.endedAt ?? 0) &&
    wokenBy?.has(info.parentID) === true
  );
}

/** The message IDs of the notices that woke a completed task, or will, as far as the records of its subtasks tell. */
function noticesSince({ id, endedAt = 0 }: TaskRecord, registry: TaskRegistry): readonly string[] {
  return registry
    .tasksOf(id)
    .filter(({ record }) => record.launchedBy === "agent")
    .flatMap(({ record: { notice } }) =>
      notice.state === "pending" || (notice.state === "delivered" && notice.at >= endedAt)
        ? [notice.messageID]
        : [],
    );
}
