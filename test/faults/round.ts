import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../../src/engine/errors.ts";
import { NOTICE_MARK } from "../../src/engine/asked.ts";
import type { Task } from "../../src/engine/task.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { endsOf, storedMessages } from "../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { mountSmall, unmount } from "../support/small-disk.ts";
import type { Stranger } from "../support/stranger.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { strike, type Field } from "./blows.ts";
import { deskProcesses, signalAll } from "./desk-processes.ts";
import { describePlan, planOf, type Plan, type PlannedTask, type Scenario, type Strike } from "./plan.ts";
import { Random } from "./random.ts";
import { withClock } from "./set-clock.ts";
import { startUnrulyProxy, type UnrulyProxy } from "./unruly-proxy.ts";
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

/** A secret is revealed if another program receives something on the port of a killed server. */
export type Fault =
  "lost" | "falsely ended" | "told twice" | "told never" | "left over" | "blocked" | "revealed";

export interface Outcome {
  readonly scenario: Scenario;
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

/** Undefined if this machine can't do what the scenario needs. */
export async function runRound(
  model: ScriptedModel,
  scenario: Scenario,
  seed: number,
): Promise<Outcome | undefined> {
  const small = scenario === "disk" ? mountSmall() : undefined;
  if (scenario === "disk" && small === undefined) return undefined;
  try {
    return await new Round(model, scenario, seed, small).run();
  } finally {
    if (small !== undefined) unmount(small);
  }
}

/** One user's day: tasks are launched, processes are killed, and everything must be right in the end. */
class Round implements Field {
  desk!: DaemonDesk;
  windows: readonly WindowProcess[] = [];
  proxy: UnrulyProxy | undefined;
  readonly clock = join(tempDir("clock"), "offset");
  readonly serverDeaths: number[] = [];
  readonly strangers: Stranger[] = [];
  kills = 0;
  private readonly plan: Plan;
  /** The user's own, behind the proxy. */
  private server: OpenCodeServer | undefined;
  private parent = "";
  private readonly asked = new Map<string, Asked>();
  private readonly faults: { fault: Fault; detail: string }[] = [];

  constructor(
    private readonly model: ScriptedModel,
    private readonly scenario: Scenario,
    private readonly seed: number,
    private readonly smallDisk: string | undefined,
  ) {
    this.plan = planOf(scenario, seed);
  }

  async run(): Promise<Outcome> {
    const begun = Date.now();
    await this.open();
    try {
      await this.work();
      await this.checkEnds();
    } catch (error) {
      this.note("blocked", messageOf(error));
    } finally {
      await Promise.all(this.windows.map((window) => window.close()));
    }
    await this.checkLeftOver();
    this.proxy?.close();
    await this.server?.stop();
    const { scenario, seed, kills, faults } = this;
    const { stateFolder } = this.desk;
    return {
      ...{ scenario, seed, kills, faults, stateFolder },
      plan: describePlan(this.plan),
      ms: Date.now() - begun,
    };
  }

  openWindow(): WindowProcess {
    return new WindowProcess(this.desk.place, this.proxy?.url);
  }

  private async open(): Promise<void> {
    const stateFolder = this.smallDisk;
    const desk = await DaemonDesk.open(this.model, {
      graceMs: GRACE_MS,
      ...(stateFolder !== undefined && { stateFolder }),
    });
    this.desk = this.scenario === "clock" ? withClock(desk, this.clock) : desk;
    if (this.scenario === "network") {
      const { model } = this;
      this.server = await startOpenCode({ model, directory: desk.directory, password: null });
      this.proxy = await startUnrulyProxy(this.server.url, new Random(this.seed));
    }
    this.windows = Array.from({ length: this.plan.windows }, () => this.openWindow());
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
        for (const each of this.windows) await each.call("connect");
        return this.window.call("ensureSession");
      },
      READY_WITHIN_MS,
    );
  }

  private async strike({ after, blow }: Strike): Promise<void> {
    await delay(after);
    await strike(blow, this);
    // Like a user who wants to see the tasks; if another strike interrupts this, it is repeated at the end.
    for (const window of this.windows) window.call("connect").catch(() => undefined);
  }

  private async workOn({ name, window, launchAfter, releaseAfter, resumed }: PlannedTask): Promise<void> {
    const gate = `${this.seed} ${name}`;
    const released = delay(releaseAfter).then(() => this.model.release(gate));
    const asked: Asked = {};
    this.asked.set(name, asked);
    await delay(launchAfter);
    const step = { text: answerOf(name), ...(releaseAfter > 0 && { gate }) };
    try {
      const launched = await this.windowAt(window).call("launch", {
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
    await this.checkOtherWindows(tasks);
    for (const { received, close } of this.strangers) {
      if (received.length > 0) this.note("revealed", received.join("\n"));
      close();
    }
  }

  private async checkEnd(task: Task): Promise<void> {
    const { id, description: name, status, resumeCount, error, startedAt } = task;
    const asked = this.asked.get(name);
    if (asked?.resumed && resumeCount === 0) this.note("lost", `the resume of ${name}`);
    if (status === "completed") {
      // A server that was just killed can still count as connected; a user tries again.
      const { result } = await until("the output", () => this.window.call("output", id), END_WITHIN_MS);
      if (result !== answerOf(name, resumeCount)) this.note("falsely ended", `${name}: "${result}"`);
      return;
    }
    // An interrupted turn ends at its last trace, which can be long before its server died.
    const wasKilled = this.serverDeaths.some((at) => at > startedAt - SLACK_MS);
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
    const messages = await storedMessages(this.server ?? this.desk, this.parent);
    for (const task of tasks) {
      const notices = messages.flatMap(({ info, parts }) => {
        const part = parts.find(({ metadata }) => metadata?.[NOTICE_MARK] === task.id);
        return part?.type === "text" ? [`${info.id} ${part.text}`] : [];
      });
      const ends = endsOf(task);
      const detail = `${task.description}: ${ends} ends, notices ${JSON.stringify(notices)}, last ${JSON.stringify(task.notice)}`;
      if (notices.length > ends) this.note("told twice", detail);
      if (notices.length < ends) this.note("told never", detail);
    }
  }

  /** All windows show the same. */
  private async checkOtherWindows(tasks: readonly Task[]): Promise<void> {
    const shown = (all: readonly Task[]): string =>
      JSON.stringify(all.map(({ id, status, resumeCount }) => [id, status, resumeCount]).sort());
    for (const window of this.windows.slice(1))
      await until("the same tasks", async () => shown(await window.tasks()) === shown(tasks)).catch(
        (error: unknown) => this.note("lost", messageOf(error)),
      );
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
      signalAll(deskProcesses(home), "SIGKILL");
    }
  }

  private get window(): WindowProcess {
    return this.windowAt(0);
  }

  private windowAt(index: number): WindowProcess {
    return this.windows[index] as WindowProcess;
  }

  get home(): string {
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
