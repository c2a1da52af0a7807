import assert from "node:assert/strict";
import { PromptSender } from "../../../src/engine/arrival.ts";
import { TaskRegistry, type Entry } from "../../../src/engine/registry.ts";
import type { SentPrompt, WorkingTurn } from "../../../src/engine/running-turn.ts";
import type { Message, Part, Prompt, ServerEvent, SessionStatus } from "../../../src/engine/server-model.ts";
import type { EngineSettings } from "../../../src/engine/settings.ts";
import { goneSession } from "../../../src/engine/task-memory.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import type { TaskEvent } from "../../../src/engine/transitions.ts";
import { TurnWatcher } from "../../../src/engine/turns.ts";
import { ENGINE_SETTINGS } from "../../support/engine-settings.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { POLL_MS } from "../../support/memory-window.ts";
import { remembered } from "../../support/remembered.ts";
import { answer, record } from "./builders.ts";

/** The ID of the task. */
export const ID = "ses_task";
export const IDLE = { type: "idle" } as const;
export const BUSY = { type: "busy" } as const;
export const RETRY = { type: "retry", attempt: 1, message: "Too many requests", next: 9e15 } as const;
export const BAD = { name: "APIError", message: "Bad." };
/** What an answer has that is complete. */
export const ENDED = { completed: 2_000, finish: "end" } as const;

/**
 * A task, and what watches its turn. The test says what the server stores: the prompts that it is sent are only kept.
 * Ends are kept, too, and don't change the task.
 */
export class WatchedTurn {
  readonly clock = new ManualClock();
  /** When the task began. */
  readonly start = this.clock.now();
  readonly server: MemoryServer;
  readonly registry: TaskRegistry;
  readonly turns: TurnWatcher;
  readonly sent: Prompt[] = [];
  readonly ends: TaskEvent[] = [];
  readonly log: string[] = [];
  settings: EngineSettings = { ...ENGINE_SETTINGS, pollInterval: POLL_MS };
  entry: Entry;

  /** @param facts what the task's record has besides the usual */
  constructor(facts: Partial<TaskRecord> = {}, likeVersion2 = false) {
    const { clock } = this;
    const server = new MemoryServer({ now: () => clock.now(), likeVersion2 });
    server.prompt = async (_, prompt) => void this.sent.push(prompt);
    this.server = server;
    const note = (message: string): void => void this.log.push(message);
    const logger = { debug: note, info: note, warn: note, error: note };
    this.registry = new TaskRegistry(server, logger, () => clock.now(), remembered());
    this.turns = new TurnWatcher(
      { server, clock, logger, settings: () => this.settings },
      this.registry,
      new PromptSender(server, clock),
      { end: async (_, event) => void this.ends.push(event) },
    );
    this.entry = this.add(facts);
  }

  /** Adds a task of which the server has no message yet. */
  add(facts: Partial<TaskRecord> = {}): Entry {
    const session = goneSession(record({ createdAt: this.start, startedAt: this.start, ...facts }));
    this.server.put(session, undefined);
    const added = this.registry.applySession(session);
    assert.ok(added);
    return added;
  }

  /** The server stores these messages of the task. */
  store(...messages: readonly Message[]): void {
    for (const { info, parts } of messages) {
      this.server.apply({ type: "message-changed", info });
      for (const part of parts)
        this.server.apply({ type: "part-changed", part: { ...part, messageID: info.id } });
    }
  }

  /** The task's session gets this status. */
  become(status: SessionStatus): void {
    this.server.apply({ type: "session-status", sessionID: ID, status });
  }

  /** How often the server was asked. */
  asked(call: string): number {
    return this.server.journal.filter((entry) => entry.call === call).length;
  }

  async hear(event: ServerEvent): Promise<void> {
    this.turns.hear();
    this.turns.accept(this.entry, event);
    await settled();
  }

  hearStatus(status: SessionStatus): Promise<void> {
    return this.hear({ type: "session-status", sessionID: ID, status });
  }

  hearError(error = BAD): Promise<void> {
    return this.hear({ type: "session-error", sessionID: ID, error });
  }

  /** A hint that says nothing about whether the session works. */
  hearHint(): Promise<void> {
    return this.hear({ type: "message-changed", info: answer(ENDED).info });
  }

  hearPart(part: Part): Promise<void> {
    return this.hear({ type: "part-changed", part });
  }

  /** Connects, and forgets what that has read. */
  async connect(): Promise<void> {
    await this.turns.connect();
    await settled();
    for (const { turn } of this.registry.active()) if (turn) turn.suspicion = undefined;
    this.server.journal.length = 0;
    this.log.length = 0;
  }

  working(): WorkingTurn {
    assert.equal(this.entry.turn?.kind, "working");
    return this.entry.turn;
  }

  /** A prompt that this process has just sent. */
  sentNow(facts: Partial<SentPrompt> = {}): SentPrompt {
    return {
      kind: "sent",
      prompt: { messageID: "msg_prompt", agent: "general", parts: [{ text: "Do it." }] },
      at: this.clock.now(),
      isDoubtful: false,
      ...facts,
    };
  }

  /** Has something happen right after the server has answered with the statuses for the `nth` time from now. */
  whileAsked(nth: number, happen: () => void): void {
    const statuses = this.server.statuses.bind(this.server);
    let times = 0;
    this.server.statuses = async () => {
      const read = await statuses();
      if (++times === nth) happen();
      return read;
    };
  }
}
