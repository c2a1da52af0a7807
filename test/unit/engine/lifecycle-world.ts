import assert from "node:assert/strict";
import fc from "fast-check";
import type { TaskChange } from "../../../src/engine/registry.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { NOTICE_MARK } from "../../../src/engine/asked.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Message } from "../../../src/engine/server-model.ts";
import { INTERRUPTED_ERROR, isActive, waitingMessage, type TaskRecord } from "../../../src/engine/task.ts";
import { isSteering } from "../../../src/engine/turn.ts";
import type { Fault } from "../../support/link.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, POLL_MS, type MemoryWindow } from "../../support/memory-window.ts";

/** What the lifecycle table allows; a resume that is refused also leads back to `completed`. */
const ALLOWED: ReadonlySet<string> = new Set([
  "running → completed",
  "running → error",
  "running → cancelled",
  "completed → resumed",
  "resumed → completed",
  "resumed → error",
  "resumed → cancelled",
]);

const MOVES = [
  "go on",
  "use a tool",
  "ask",
  "retry",
  "overflow",
  "complete",
  "say nothing",
  "fail",
  "refuse",
] as const;
/** How long a server that has started again takes to resume turns, if it does. */
const STARTING_MS = POLL_MS + 1_000;
const FAULTS = ["refused", "answer-lost", "late", "answer-late"] as const satisfies readonly Fault[];

/** One step. `of` selects a task by its index, modulo the number of tasks. */
type Step =
  | { readonly do: "launch"; readonly by: "agent" | "person" }
  | {
      readonly do:
        "resume" | "steer" | "steer after" | "withdraw" | "cancel" | "clear" | "retry" | "continue" | "wait";
      readonly of: number;
    }
  /** The server continues. */
  | { readonly do: "move"; readonly of: number; readonly move: (typeof MOVES)[number] }
  | { readonly do: "deliver"; readonly count: number }
  | { readonly do: "drop" | "double" | "swap" | "release" }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "fault"; readonly fault: Fault; readonly after: number }
  | { readonly do: "disconnect" | "connect" | "restart engine" | "restart server" };

const of = fc.nat({ max: 5 });
const commands = fc.oneof(
  fc.record({ do: fc.constant("launch" as const), by: fc.constantFrom("agent" as const, "person" as const) }),
  fc.record({ do: fc.constantFrom("resume" as const, "cancel", "clear", "retry", "continue", "wait"), of }),
  fc.record({ do: fc.constantFrom("steer" as const, "steer after", "withdraw"), of }),
);
const server = fc.record({ do: fc.constant("move" as const), of, move: fc.constantFrom(...MOVES) });
const delivery = fc.oneof(
  fc.record({ do: fc.constant("deliver" as const), count: fc.integer({ min: 1, max: 12 }) }),
  fc.record({ do: fc.constantFrom("drop" as const, "double", "swap") }),
);
const time = fc.record({
  do: fc.constant("pass" as const),
  ms: fc.constantFrom(200, 1_000, POLL_MS, 3 * POLL_MS),
});
const upsets = fc.oneof(
  fc.record({
    do: fc.constant("fault" as const),
    fault: fc.constantFrom(...FAULTS),
    after: fc.nat({ max: 3 }),
  }),
  fc.record({
    do: fc.constantFrom("release" as const, "disconnect", "connect", "restart engine", "restart server"),
  }),
);
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: commands },
  { weight: 6, arbitrary: server },
  { weight: 4, arbitrary: delivery },
  { weight: 3, arbitrary: time },
  { weight: 2, arbitrary: upsets },
);
export interface History {
  /** The number of tasks that may run at once; 0: any number. */
  readonly limit: number;
  readonly steps: readonly Step[];
}

/** Most steps concern a task, so there is one from the start. */
export const histories: fc.Arbitrary<History> = fc.record({
  limit: fc.constantFrom(0, 1, 2),
  steps: fc
    .tuple(
      fc.record({
        do: fc.constant("launch" as const),
        by: fc.constantFrom("agent" as const, "person" as const),
      }),
      fc.array(steps, { maxLength: 30, size: "max" }),
    )
    .map(([first, rest]) => [first, ...rest]),
});

/** A server with a session to launch from, and one window on it at a time. */
export class World {
  readonly clock = new ManualClock();
  private readonly server: MemoryServer;
  private readonly wrong: string[] = [];
  /** The turns whose end was observed, by task and prompt. */
  private readonly ended = new Set<string>();
  private window: MemoryWindow;
  private windows = 0;
  private isConnected = false;
  /** When the server resumes interrupted turns. */
  private readyAt = 0;
  private parent = "";

  constructor(
    private readonly limit: number,
    /** Called with each window as it opens. */
    private readonly onDidOpen: (window: MemoryWindow) => void = () => undefined,
    likeVersion2 = false,
  ) {
    this.server = new MemoryServer({ now: () => this.clock.now(), stepwise: true, likeVersion2 });
    this.window = this.openWindow();
  }

  async start(): Promise<void> {
    this.parent = (await this.server.createSession({ title: "Parent", agent: "build" })).id;
    await this.connect();
  }

  async take(step: Step): Promise<void> {
    const { engine, link } = this.window;
    switch (step.do) {
      case "launch":
        this.run(engine.launch({ prompt: "Do it.", parentSessionID: this.parent, launchedBy: step.by }));
        break;
      case "resume":
        this.runOn(step.of, (id) => engine.resume(id, "Go on."));
        break;
      case "steer":
        this.runOn(step.of, (id) => engine.steer(id, "Look here, too."));
        break;
      case "steer after":
        this.runOn(step.of, (id) => engine.steer(id, "Then this.", { after: true }));
        break;
      case "withdraw":
        this.runOn(step.of, (id) => engine.withdraw(id));
        break;
      case "continue":
        this.runOn(step.of, (id) => engine.continue(id));
        break;
      case "cancel":
        this.runOn(step.of, (id) => engine.cancel(id));
        break;
      case "clear":
        this.runOn(step.of, (id) => engine.clear(id, { cancelRunning: true }));
        break;
      case "retry":
        this.runOn(step.of, (id) => engine.retry(id));
        break;
      case "wait":
        this.runOn(step.of, (id) => engine.wait([id], { timeoutMs: POLL_MS }));
        break;
      case "move":
        this.move(step.of, step.move);
        break;
      case "deliver":
        link.deliver(step.count);
        break;
      case "drop":
        link.drop(1);
        break;
      case "double":
        link.double();
        break;
      case "swap":
        link.swap();
        break;
      case "release":
        link.release();
        break;
      case "pass":
        this.beginAll();
        await this.clock.advance(step.ms);
        break;
      case "fault":
        link.fail(step.fault, step.after);
        break;
      case "disconnect":
        this.disconnect();
        break;
      case "connect":
        if (!this.isConnected) await this.connect();
        break;
      case "restart engine":
        await this.restartEngine();
        break;
      case "restart server":
        this.disconnect();
        this.server.crash();
        this.readyAt = this.clock.now() + STARTING_MS;
        await this.connect();
        break;
    }
    await settled();
  }

  /** Ends all faults, and lets every turn end. */
  async calmDown(): Promise<void> {
    this.window.link.heal();
    await settled();
    this.window.link.deliver();
    // The next connect finds a task whose creation no event reported.
    const isUnknown = ({ id }: TaskRecord): boolean => !this.window.engine.get(id);
    if (this.records().some(isUnknown)) this.disconnect();
    if (!this.isConnected) await this.connect();
    for (let round = 0; round < 20; round++) {
      for (let moves = 0; moves < 50; moves++) this.move(0, "complete");
      this.window.link.deliver();
      await this.clock.advance(POLL_MS);
    }
  }

  judge(): void {
    const { engine } = this.window;
    for (const { id, status } of engine.active()) this.wrong.push(`${id} is ${status} for ever`);
    for (const record of this.records()) this.compare(record, engine.get(record.id));
    for (const id of this.server.running().keys()) this.wrong.push(`${id} is at work for nobody`);
    for (const [id, times] of this.told())
      if (!this.records().some((record) => record.id === id))
        this.wrong.push(`${id} was told ${times} times`);
    assert.deepEqual(this.wrong, []);
  }

  /** Compares a task on the server with the engine's, and checks the parent's notices. */
  private compare(record: TaskRecord, task: TaskRecord | undefined): void {
    const { id, status } = record;
    if (task?.status !== status) this.wrong.push(`${id} is ${task?.status} here and ${status} on the server`);
    if (status === "completed" && waitingMessage(record) !== undefined)
      this.wrong.push(`${id}'s follow-up is still waiting`);
    if (record.notice.state === "pending") this.wrong.push(`${id}'s notice is still pending`);
    const ends = [...this.ended].filter((turn) => turn.startsWith(id)).length;
    const told = this.told().get(id) ?? 0;
    if (told !== ends) this.wrong.push(`${id} ended ${ends} times and was told ${told} times`);
  }

  /** The number of notices that were sent for each task. */
  private told(): ReadonlyMap<string, number> {
    const taskOf = new Map(
      this.server.stored(this.parent).flatMap((message) => {
        const taskID = noticeOf(message);
        return taskID === undefined ? [] : [[message.info.id, taskID]];
      }),
    );
    const told = new Map<string, number>();
    for (const { call, messageID = "", parts } of this.server.journal) {
      const taskID = taskOf.get(messageID);
      if (call === "prompt" && parts && taskID !== undefined) told.set(taskID, (told.get(taskID) ?? 0) + 1);
    }
    return told;
  }

  private records(): readonly TaskRecord[] {
    return this.server.known().flatMap(({ task }) => (task.kind === "task" ? [task.record] : []));
  }

  private openWindow(): MemoryWindow {
    const window = memoryWindow(this.server, this.clock, { maxConcurrentTasks: this.limit }, ++this.windows);
    window.engine.onDidChange((change) => this.check(change));
    this.onDidOpen(window);
    return window;
  }

  private check({ before, after }: TaskChange): void {
    if (!after || before?.status === after.status) return;
    const change = `${before?.status} → ${after.status}`;
    if (before && !ALLOWED.has(change)) this.wrong.push(`${after.id}: ${change}`);
    if (isActive(after)) return;
    const turn = turnOf(this.server.stored(after.id), after.promptMessageID);
    // It was undone: the server never accepted this prompt.
    if (before?.status === "resumed" && after.status === "completed" && !turn.isThere) return;
    this.ended.add(`${after.id} ${after.promptMessageID}`);
    if (after.status === "completed" && !turn.isAnswered)
      this.wrong.push(`${after.id} is said to be completed`);
    if (after.status === "completed" && !turn.isSteeringAnswered)
      this.wrong.push(`${after.id} is said to be completed before a message was answered`);
    const stage = this.server.running().get(after.id);
    if (
      before &&
      after.status === "error" &&
      (stage === "busy" || stage === "tool" || (stage === "taken" && after.error?.name === INTERRUPTED_ERROR))
    )
      this.wrong.push(`${after.id} is said to have failed (${after.error?.name}) and is at work`);
  }

  private async connect(): Promise<void> {
    this.isConnected = true;
    const connecting = this.window.engine.connect().catch((error: unknown) => {
      this.expectFailure(error);
      this.isConnected = false;
    });
    await Promise.race([connecting, settled()]);
  }

  private disconnect(): void {
    this.isConnected = false;
    this.window.engine.disconnect();
    this.window.link.drop();
  }

  private async restartEngine(): Promise<void> {
    this.window.kill();
    this.window = this.openWindow();
    await this.connect();
  }

  private runOn(index: number, command: (taskID: string) => Promise<unknown>): void {
    const tasks = this.records();
    const task = tasks[index % tasks.length];
    if (task) this.run(command(task.id));
  }

  /** A command may take longer than the step, and may fail in the two permitted ways. */
  private run(command: Promise<unknown>): void {
    command.catch((error: unknown) => this.expectFailure(error));
  }

  private expectFailure(error: unknown): void {
    if (!(error instanceof Refusal || error instanceof ServerFailure)) this.wrong.push(String(error));
  }

  /** A server takes milliseconds to begin an accepted prompt, and longer to resume turns after its start. */
  private beginAll(): void {
    if (this.server.resumesTurns && this.clock.now() < this.readyAt) return;
    for (const [id, stage] of this.server.running())
      if (stage === "taken" && this.server.has(id)) this.server.begin(id);
  }

  private move(index: number, move: (typeof MOVES)[number]): void {
    const running = [...this.server.running()].filter(([id]) => this.server.has(id));
    const [id, stage] = running[index % running.length] ?? [];
    if (id === undefined) return;
    if (stage === "taken") this.server.begin(id);
    else if (stage === "ending" || stage === "tool") this.server.step(id);
    else if (stage === "asking")
      this.server.reply(id, move === "refuse" || move === "fail" ? "reject" : "once");
    else this.work(id, move);
  }

  private work(id: string, move: (typeof MOVES)[number]): void {
    switch (move) {
      case "go on":
        return this.server.write(id, "…");
      case "use a tool":
        return this.server.useTool(id);
      case "ask":
      case "refuse":
        return void this.server.ask(id);
      case "retry":
        return this.server.retry(id);
      case "overflow":
        return this.server.overflow(id);
      case "complete":
        return this.server.end(id, { type: "completed", text: "Done." });
      case "say nothing":
        return this.server.end(id, { type: "completed", text: "" });
      case "fail":
        return this.server.end(id, { type: "failed", error: { name: "APIError", message: "No." } });
    }
  }
}

/** Whether the prompt exists and has a complete answer. */
function turnOf(messages: readonly Message[], promptMessageID: string) {
  const prompt = messages.findIndex(({ info }) => info.id === promptMessageID);
  const since = messages.slice(prompt + 1);
  const last = since.findLast(({ info }) => info.role === "assistant")?.info;
  return {
    isThere: prompt !== -1,
    isSteeringAnswered:
      since.findLastIndex(isSteering) <= since.findLastIndex(({ info }) => info.role === "assistant"),
    isAnswered:
      prompt !== -1 &&
      last?.role === "assistant" &&
      last.completed !== undefined &&
      last.error === undefined &&
      last.finish === "end",
  };
}

/** The task that a notice is about. */
function noticeOf({ parts }: Message): string | undefined {
  for (const part of parts) {
    const taskID = part.type === "text" ? part.metadata?.[NOTICE_MARK] : undefined;
    if (typeof taskID === "string") return taskID;
  }
  return undefined;
}
