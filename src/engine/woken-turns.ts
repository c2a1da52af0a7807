import { messageOf } from "./errors.ts";
import type { Notices } from "./notices.ts";
import type { AgentServer, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { AssistantMessageInfo, MessageInfo, ServerEvent } from "./server-model.ts";
import { shortID, type TaskRecord } from "./task.ts";
import { transition } from "./transitions.ts";
import { TURN_WINDOW } from "./turn.ts";
import type { TurnWatcher } from "./turns.ts";

interface WokenTurnsParts {
  readonly server: AgentServer;
  readonly logger: Logger;
  readonly registry: TaskRegistry;
  readonly notices: Notices;
  readonly turns: TurnWatcher;
}

/**
 * The notice of a subtask wakes its parent, which can be a task that has completed. Its turn is then followed like that
 * of a follow-up: its requests are shown, its limits apply, and its parent is notified of the new answer.
 */
export class WokenTurns {
  constructor(private readonly parts: WokenTurnsParts) {}

  /** Processes an event in the session of a task. */
  accept(entry: Entry, event: ServerEvent): void {
    if (event.type === "message-changed" && isWoken(entry, event.info, this.parts.registry))
      void this.follow(entry, event.info);
  }

  /** Follows the turns that began while there was no connection, and may have ended since. */
  async takeUp(): Promise<void> {
    const { registry, server } = this.parts;
    const candidates = registry.all().filter(({ record }) => noticesSince(record, registry).length > 0);
    await Promise.all(
      candidates.map(async (entry) => {
        const messages = await server.messages(entry.record.id, TURN_WINDOW).catch(() => []);
        const answer = messages.map(({ info }) => info).findLast((info) => isWoken(entry, info, registry));
        if (answer?.role === "assistant") await this.follow(entry, answer);
      }),
    );
  }

  private async follow(entry: Entry, { parentID, created }: AssistantMessageInfo): Promise<void> {
    const { registry, notices, turns, logger } = this.parts;
    try {
      await entry.serial.run(async () => {
        if (entry.record.status !== "completed") return;
        // The record of the earlier end is replaced, so its notice must be delivered first.
        await notices.deliverNow(entry);
        const woken = transition(entry.record, { type: "resume", at: created, promptMessageID: parentID });
        await registry.storeThenShow(entry, {
          ...woken,
          callID: undefined,
          notice: { state: "none" },
          retrievedAt: undefined,
        });
        turns.follow(entry);
      });
    } catch (error) {
      logger.warn(`Couldn't follow task ${shortID(entry.record.id)}, which goes on: ${messageOf(error)}`);
    }
  }
}

/** Whether this message answers the notice of a subtask, after the task had completed. */
function isWoken({ record }: Entry, info: MessageInfo, registry: TaskRegistry): info is AssistantMessageInfo {
  return (
    info.role === "assistant" &&
    info.id !== record.finalMessageID &&
    info.created >= (record.endedAt ?? Infinity) &&
    noticesSince(record, registry).includes(info.parentID)
  );
}

/** The message IDs of the notices that a completed task may have got from its subtasks since. */
function noticesSince({ id, status, endedAt = 0 }: TaskRecord, registry: TaskRegistry): readonly string[] {
  if (status !== "completed") return [];
  return [...registry.tasksOf(id), ...registry.lost().filter(({ record }) => record.parentSessionID === id)]
    .map(({ record }) => record.notice)
    .flatMap((notice) =>
      notice.state === "pending" || (notice.state === "delivered" && notice.at >= endedAt)
        ? [notice.messageID]
        : [],
    );
}
