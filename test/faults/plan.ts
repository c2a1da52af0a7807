import type { Kind } from "./desk-processes.ts";
import type { Network } from "./unruly-proxy.ts";
import { Random } from "./random.ts";

/** What goes wrong in a round, in the order of the table. */
export const SCENARIOS = [
  "kills",
  "stops",
  "two windows",
  "strangers",
  "disk",
  "descriptors",
  "clock",
  "network",
] as const;
export type Scenario = (typeof SCENARIOS)[number];

export type Victim = Exclude<Kind, "other"> | "window";

/** What is done to the processes. Times are in milliseconds. */
export type Blow =
  | {
      readonly kind: "kill";
      readonly victims: readonly Victim[];
      /** If a window is killed: the time until the user opens it again. */
      readonly reopenAfter: number;
      /** Another program takes the port of a killed server. */
      readonly portTaken?: boolean;
    }
  | { readonly kind: "stop"; readonly victims: readonly Victim[]; readonly forMs: number }
  | { readonly kind: "disk"; readonly how: "full" | "read-only"; readonly forMs: number }
  /** The daemon can open no further file or connection. */
  | { readonly kind: "descriptors"; readonly forMs: number }
  /** The daemon's clock is set. */
  | { readonly kind: "clock"; readonly byMs: number }
  | { readonly kind: "network"; readonly how: Network; readonly forMs: number };

/** A blow, and how long after the previous one or the beginning it falls. */
export interface Strike {
  readonly after: number;
  readonly blow: Blow;
}

export interface PlannedTask {
  readonly name: string;
  /** The index of the window in which it is launched. */
  readonly window: number;
  readonly launchAfter: number;
  /** The time after the beginning when its model may answer; 0: at once. */
  readonly releaseAfter: number;
  readonly resumed: boolean;
}

export interface Plan {
  /** The first strike happens while everything starts. */
  readonly cold: boolean;
  readonly windows: number;
  readonly strikes: readonly Strike[];
  readonly tasks: readonly PlannedTask[];
}

const HOUR = 3_600_000;

const COMBINATIONS: readonly (readonly Victim[])[] = [
  ["server"],
  ["daemon"],
  ["window"],
  ["server", "daemon"],
  ["server", "window"],
  ["daemon", "window"],
  ["server", "daemon", "window"],
];
/** Longer than it takes until a daemon or a stream counts as silent. */
const LONG_STOP = 14_000;

/** The same for the same scenario and seed. */
export function planOf(scenario: Scenario, seed: number): Plan {
  const random = new Random(seed);
  const strikes = Array.from({ length: random.between(1, 3) }, () => ({
    after: random.between(0, 3_000),
    blow: blowOf(scenario, random),
  }));
  const windows = scenario === "two windows" ? 2 : 1;
  const tasks = Array.from({ length: random.between(3, 6) }, (_, index) => ({
    name: `T${index}`,
    window: index % windows,
    launchAfter: random.between(0, 1_500),
    releaseAfter: random.chance(0.7) ? random.between(500, 5_000) : 0,
    resumed: random.chance(0.4),
  }));
  return { cold: random.chance(0.4), windows, strikes, tasks };
}

function blowOf(scenario: Scenario, random: Random): Blow {
  switch (scenario) {
    case "kills":
    case "two windows":
      return kill(random, COMBINATIONS);
    case "strangers":
      return { ...kill(random, [["server"], ["server", "daemon"]]), portTaken: true };
    case "stops": {
      const victims = random.pick(COMBINATIONS);
      return { kind: "stop", victims, forMs: random.chance(0.2) ? LONG_STOP : random.between(200, 4_000) };
    }
    case "disk":
      return random.chance(0.3)
        ? kill(random, [["daemon"], ["server"]])
        : {
            kind: "disk",
            how: random.pick(["full", "read-only"] as const),
            forMs: random.between(300, 4_000),
          };
    case "descriptors":
      return random.chance(0.2)
        ? kill(random, [["server"]])
        : { kind: "descriptors", forMs: random.between(300, 4_000) };
    case "clock":
      return random.chance(0.2)
        ? kill(random, [["daemon"]])
        : { kind: "clock", byMs: random.between(-5 * HOUR, 5 * HOUR) };
    case "network":
      return random.chance(0.2)
        ? kill(random, [["daemon"], ["window"]])
        : {
            kind: "network",
            how: random.pick(["cut", "stall", "duplicate", "delay", "reorder", "half-open"] as const),
            forMs: random.between(300, 6_000),
          };
  }
}

type Kill = Extract<Blow, { kind: "kill" }>;

function kill(random: Random, combinations: readonly (readonly Victim[])[]): Kill {
  return { kind: "kill", victims: random.pick(combinations), reopenAfter: random.between(0, 800) };
}

export function describePlan({ cold, strikes }: Plan): string {
  return `${cold ? "cold" : "warm"} ${strikes.map(({ blow }) => describeBlow(blow)).join(", ")}`;
}

function describeBlow(blow: Blow): string {
  switch (blow.kind) {
    case "kill":
      return blow.victims.join("+");
    case "stop":
      return `stop ${blow.victims.join("+")} ${blow.forMs} ms`;
    case "clock":
      return `clock ${Math.round(blow.byMs / 60_000)} min`;
    case "descriptors":
      return `descriptors ${blow.forMs} ms`;
    case "disk":
    case "network":
      return `${blow.how} ${blow.forMs} ms`;
  }
}
