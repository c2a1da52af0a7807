import type { AssistantMessageInfo } from "../engine/server-model.ts";

type Finish = NonNullable<AssistantMessageInfo["finish"]>;

/** What OpenCode writes for it. */
const REASONS: Readonly<Record<Finish, string>> = { tools: "tool-calls", cut: "length", end: "stop" };

/** Why a model stopped. Reasons that don't matter, such as `unknown`, are an end like any other. */
export function readFinish(reason: string | undefined): Finish | undefined {
  if (reason === undefined) return undefined;
  if (reason === REASONS.tools) return "tools";
  return reason === REASONS.cut || reason === "content-filter" ? "cut" : "end";
}

export function finishReason(finish: Finish): string {
  return REASONS[finish];
}
