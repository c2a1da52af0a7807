import assert from "node:assert/strict";
import { TaskEngine, type EngineSettings } from "../../src/engine/engine.ts";
import { messageOf } from "../../src/engine/errors.ts";
import type { Logger, Worktrees } from "../../src/engine/ports.ts";
import type { TaskRecord } from "../../src/engine/task.ts";
import { ENGINE_SETTINGS } from "./engine-settings.ts";
import { Link } from "./link.ts";
import { ManualClock } from "./manual-clock.ts";
import { MemoryServer } from "./memory-server.ts";
import { noWorktrees } from "./no-worktrees.ts";
import { remembered } from "./remembered.ts";
import { roughTokens } from "./rough-tokens.ts";

/** Milliseconds between two polls. */
export const POLL_MS = 5_000;

/** The engine of a window, connected to an in-memory server by its own link. */
export interface MemoryWindow {
  readonly engine: TaskEngine;
  readonly link: Link;
  /** Warnings and errors, one line each. */
  readonly log: readonly string[];
  /** Ends the engine like a crash: calls in progress get no further. */
  kill(): void;
}

/** Creates an engine that isn't connected and knows nothing yet. `seed` determines its random numbers. */
export function memoryWindow(
  server: MemoryServer,
  clock: ManualClock,
  settings: Partial<EngineSettings> = {},
  seed = 1,
  tombstones = remembered(),
  worktrees: Worktrees = noWorktrees,
): MemoryWindow {
  const link = new Link(server, clock);
  const log: string[] = [];
  const note = (message: string, error?: unknown): void =>
    void log.push(error === undefined ? message : `${message} ${messageOf(error)}`);
  const logger: Logger = { debug: () => undefined, info: () => undefined, warn: note, error: note };
  const engine = new TaskEngine({
    server: link,
    clock,
    logger,
    random: randomNumbers(seed),
    tombstones,
    tokens: roughTokens,
    worktrees,
    settings: () => ({
      ...ENGINE_SETTINGS,
      pollInterval: POLL_MS,
      ...settings,
    }),
  });
  return {
    engine,
    link,
    log,
    kill() {
      link.cut();
      engine.dispose();
    },
  };
}

/** Opens such a window that hears of every event at once, and connects it. */
export async function openWindow(...args: Parameters<typeof memoryWindow>): Promise<MemoryWindow> {
  const window = memoryWindow(...args);
  args[0].onEvent(() => window.link.deliver());
  await window.engine.connect();
  return window;
}

/** A server of its own with such a window, and a session there to launch tasks from. */
export interface NewWindow {
  readonly clock: ManualClock;
  readonly server: MemoryServer;
  readonly window: MemoryWindow;
  /** The ID of the session. */
  readonly parent: string;
}

export async function newWindow(settings: Partial<EngineSettings> = {}): Promise<NewWindow> {
  const { clock, server, parent } = await newServer();
  return { clock, server, parent, window: await openWindow(server, clock, settings) };
}

/** The same without the window. */
export async function newServer(): Promise<Omit<NewWindow, "window">> {
  const clock = new ManualClock();
  const server = new MemoryServer({ now: () => clock.now() });
  return { clock, server, parent: (await server.createSession({ title: "Parent", agent: "build" })).id };
}

/** The record of a task as the server has it. */
export async function storedRecord(server: MemoryServer, id: string): Promise<TaskRecord> {
  const session = await server.session(id);
  assert.ok(session?.task.kind === "task", `There is no task ${id}.`);
  return session.task.record;
}

/** A small generator (mulberry32), because tests need reproducible numbers, not good ones. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
