import fc from "fast-check";
import { apiAnswers } from "./api-answers.ts";
import { contractMessages } from "./contract-messages.ts";
import { events } from "./events.ts";
import { panelMessages } from "./panel-messages.ts";
import { prompts } from "./prompts.ts";
import { records } from "./records.ts";
import type { Target } from "./target.ts";
import { toolCalls } from "./tool-calls.ts";

export const TARGETS: readonly Target[] = [
  events,
  apiAnswers,
  records,
  toolCalls,
  contractMessages,
  panelMessages,
  prompts,
];

/** Runs this many cases. Throws with the shortest failing case that was found. The same seed gives the same cases. */
export async function fuzz(target: Target, seed: number, cases: number): Promise<void> {
  const opened = await target.open();
  await fc.assert(opened.property, { seed, numRuns: cases, maxSkipsPerRun: 1_000 });
  await opened.close();
}
