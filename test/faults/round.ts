import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../../src/engine/errors.ts";
import { NOTICE_MARK } from "../../src/engine/notices.ts";
import type { Task } from "../../src/engine/task.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { storedMessages } from "../support/engine.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { deskProcesses, killAll, type Kind } from "./desk-processes.ts";
import { Random } from "./random.ts";
import { WindowGone, WindowProcess } from "./window-process.ts";

/** How long daemon, folders and servers stay unused, in milliseconds; longer than the next daemon takes to start. */
const GRACE_MS = 5_000;
const READY_WITHIN_MS = 120_000;
/** Longer than a start takes on the busiest machine. */
const BLOCKED_MS = 60_000;
const END_WITHIN_MS = 60_000;
const LEAVE_WITHIN_MS = 30_000;
/** Tolerance: tasks get their times from another process than kills, and a server ends a moment after its kill. */
const SLACK_MS = 1_000;

type Victim = Exclude<Kind, "other"> | "window";

/** What is killed, and how long after the previous strike or the beginning. */
interface Strike {
  readonly after: number;
  readonly victims: readonly Victim[];
  /** If a window is killed: the time until the user opens it again. */
  readonly reopenAfter: number;
}

interface PlannedTask {
  readonly name: string;
  readonly launchAfter: number;
  /** The time after the beginning when its model may answer; 0: at once. */
  readonly releaseAfter: number;
  readonly resumed: boolean;
}

interface Plan {
  /** The first strike happens while everything starts. */
  readonly cold: boolean;
  readonly strikes: readonly Strike[];
  readonly tasks: readonly PlannedTask[];
}

export type Fault = "lost" | "falsely ended" | "told twice" | "told never" | "left over" | "blocked";

export interface Outcome {
  readonly seed: number;
  readonly plan: string;
  readonly kills: number;
  readonly faults: readonly { readonly fault: Fault; readonly detail: string }[];
  readonly ms: number;
  /** The folder with its logs. */
  readonly stateFolder: string;
}

/** What the user requested and saw. */
interface Asked {
  id?: string;
  /** Whether a resume was answered. */
  resumed?: boolean;
}

const COMBINATIONS: readonly (readonly Victim[])[] = [
  ["server"],
  ["daemon"],
  ["window"],
  ["server", "daemon"],
  ["server", "window"],
  ["daemon", "window"],
  ["server", "daemon", "window"],
];

export async function runRound(model: ScriptedModel, seed: number): Promise<Outcome> {
  const round = new Round(model, planOf(new Random(seed)), seed);
  return round.run();
}

function planOf(random: Random): Plan {
  const strikes = Array.from({ length: random.between(1, 3) }, () => ({
    after: random.between(0, 3_000),
    victims: random.pick(COMBINATIONS),
    reopenAfter: random.between(0, 800),
  }));
  const tasks = Array.from({ length: random.between(3, 6) }, (_, index) => ({
    name: `T${index}`,
    launchAfter: random.between(0, 1_500),
    releaseAfter: random.chance(0.7) ? random.between(500, 5_000) : 0,
    resumed: random.chance(0.4),
  }));
  return { cold: random.chance(0.4), strikes, tasks };
}

/** One user's day: tasks are launched, processes are killed, and everything must be right in the end. */
class Round {
  private desk!: DaemonDesk;
  private window!: WindowProcess;
  private parent = "";
  private readonly asked = new Map<string, Asked>();
  private readonly serverDeaths: number[] = [];
  private kills = 0;
  private readonly faults: { fault: Fault; detail: string }[] = [];

  constructor(
    private readonly model: ScriptedModel,
    private readonly plan: Plan,
    private readonly seed: number,
  ) {}

  async run(): Promise<Outcome> {
    const begun = Date.now();
    this.desk = await DaemonDesk.open(this.model, { graceMs: GRACE_MS });
    this.window = new WindowProcess(this.desk.place);
    try {
      await this.work();
      await this.checkEnds();
    } catch (error) {
      this.note("blocked", messageOf(error));
    } finally {
      await this.window.close();
    }
    await this.checkLeftOver();
    const { cold, strikes } = this.plan;
    const plan = `${cold ? "cold" : "warm"} ${strikes.map(({ victims }) => victims.join("+")).join(", ")}`;
    const { seed, kills, faults } = this;
    return { seed, plan, kills, faults, ms: Date.now() - begun, stateFolder: this.desk.stateFolder };
  }

  private async work(): Promise<void> {
    const { cold, strikes, tasks } = this.plan;
    const [first, ...others] = strikes;
    const early = cold && first ? this.strike(first) : undefined;
    this.parent = await this.ready();
    await early;
    const later = cold ? others : strikes;
    await Promise.all([
      (async () => {
        for (const strike of later) await this.strike(strike);
      })(),
      ...tasks.map((task) => this.workOn(task)),
    ]);
  }

  /** The folder's session, once everything is running. */
  private async ready(): Promise<string> {
    return until(
      "a connected window",
      async () => {
        await this.window.call("connect");
        return this.window.call("ensureSession");
      },
      READY_WITHIN_MS,
    );
  }

  private async strike({ after, victims, reopenAfter }: Strike): Promise<void> {
    await delay(after);
    const processes = deskProcesses(this.home).filter(({ kind }) => victims.includes(kind as Victim));
    if (processes.some(({ kind }) => kind === "server")) this.serverDeaths.push(Date.now());
    killAll(processes);
    this.kills += processes.length;
    if (victims.includes("window")) {
      this.kills++;
      await this.window.kill();
      await delay(reopenAfter);
      this.window = new WindowProcess(this.desk.place);
    }
    // Like a user who wants to see the tasks; if another strike interrupts this, it is repeated at the end.
    this.window.call("connect").catch(() => undefined);
  }

  private async workOn({ name, launchAfter, releaseAfter, resumed }: PlannedTask): Promise<void> {
    const gate = `${this.seed} ${name}`;
    const released = delay(releaseAfter).then(() => this.model.release(gate));
    const asked: Asked = {};
    this.asked.set(name, asked);
    await delay(launchAfter);
    const step = { text: answerOf(name), ...(releaseAfter > 0 && { gate }) };
    try {
      const launched = await this.window.call("launch", {
        prompt: script([step]),
        description: name,
        agent: "general",
        parentSessionID: this.parent,
        launchedBy: "person",
      });
      asked.id = launched.id;
      if (resumed) await this.resume(name, launched.id, asked);
    } catch {
      // The user saw the error; the end of the round checks whether the task exists.
    }
    await released;
  }

  private async resume(name: string, id: string, asked: Asked): Promise<void> {
    await until("the end", () => this.window.call("output", id, { block: true }), END_WITHIN_MS);
    asked.resumed = false;
    await this.window.call("resume", id, script([{ text: answerOf(name, 1) }]));
    asked.resumed = true;
  }

  private async checkEnds(): Promise<void> {
    const before = performance.now();
    await this.ready();
    const took = Math.round(performance.now() - before);
    if (took > BLOCKED_MS) this.note("blocked", `${took} ms until the server could be used`);
    let tasks: readonly Task[] = [];
    try {
      await until(
        "the ends",
        async () => {
          tasks = await this.window.tasks();
          return tasks.every(isSettled);
        },
        END_WITHIN_MS,
      );
    } catch (error) {
      if (error instanceof WindowGone) throw error;
      for (const task of tasks)
        if (!isSettled(task))
          this.note(
            "lost",
            `${task.description} is ${task.status}, its notice ${JSON.stringify(task.notice)}`,
          );
    }
    for (const [name, { id }] of this.asked)
      if (id !== undefined && !tasks.some((task) => task.id === id)) this.note("lost", `${name} (${id})`);
    for (const task of tasks) await this.checkEnd(task);
    await this.checkNotices(tasks);
  }

  private async checkEnd(task: Task): Promise<void> {
    const { id, description: name, status, resumeCount, error, startedAt, endedAt = 0 } = task;
    const asked = this.asked.get(name);
    if (asked?.resumed && resumeCount === 0) this.note("lost", `the resume of ${name}`);
    if (status === "completed") {
      const { result } = await this.window.call("output", id);
      if (result !== answerOf(name, resumeCount)) this.note("falsely ended", `${name}: "${result}"`);
      return;
    }
    const wasKilled = this.serverDeaths.some((at) => at > startedAt - SLACK_MS && at < endedAt + SLACK_MS);
    if (wasKilled && ["Interrupted", "PromptLost"].includes(error?.name ?? "")) return;
    // The caller was informed that it may not have been done.
    const isUnsure = asked?.id === undefined || asked.resumed === false;
    if (isUnsure && ["NeverStarted", "PromptLost"].includes(error?.name ?? "")) return;
    if (isSettled(task))
      this.note(
        "falsely ended",
        `${name} ${status}: ${JSON.stringify(error)}, asked ${JSON.stringify(asked)}`,
      );
  }

  private async checkNotices(tasks: readonly Task[]): Promise<void> {
    const messages = await storedMessages(this.desk, this.parent);
    const told = messages.map(({ parts }) => parts.map((part) => part.metadata?.[NOTICE_MARK]));
    for (const { id, description, resumeCount, notice } of tasks) {
      const count = told.filter((marks) => marks.includes(id)).length;
      const detail = `${description}: ${count} notices, ${resumeCount + 1} ends, ${JSON.stringify(notice)}`;
      if (count > resumeCount + 1) this.note("told twice", detail);
      if (count < resumeCount + 1) this.note("told never", detail);
    }
  }

  private async checkLeftOver(): Promise<void> {
    const { home } = this;
    const left = (): readonly string[] => [
      ...deskProcesses(home).map(({ kind, pid }) => `${kind} ${pid}`),
      ...readdirSync(this.desk.stateFolder).filter((name) => /\.(lock|tmp|sock)|^server-.*json/.test(name)),
    ];
    try {
      await until("the end of all", () => left().length === 0, LEAVE_WITHIN_MS);
    } catch {
      this.note("left over", left().join(", "));
      killAll(deskProcesses(home));
    }
  }

  private get home(): string {
    return this.desk.env["HOME"] ?? "";
  }

  private note(fault: Fault, detail: string): void {
    this.faults.push({ fault, detail });
  }
}

function answerOf(name: string, resumeCount = 0): string {
  return `${name} is done${resumeCount === 0 ? "" : " again"}.`;
}

function isSettled({ status, notice }: Task): boolean {
  return (
    status !== "running" &&
    status !== "resumed" &&
    (notice.state === "delivered" || notice.state === "skipped")
  );
}
