import { readFileSync } from "node:fs";

/** The payloads of a real server's events, as values of JSON. */
export function recordedPayloads(): readonly Payload[] {
  return ["tool-turn", "errors", "aborts", "requests"].flatMap((name) =>
    readFileSync(new URL(`../support/recordings/${name}.jsonl`, import.meta.url), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Payload),
  );
}

export interface Payload {
  readonly type: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** A property of the events of this type, one value for each. */
export function recorded(type: string, property: string): readonly unknown[] {
  return recordedPayloads().flatMap((payload) =>
    payload.type === type && property in payload.properties ? [payload.properties[property]] : [],
  );
}

const PLACE = { sessionID: "ses_1", messageID: "msg_1", agent: "build", callID: "call_1" };

/** Calls of each tool, as OpenCode's plugin sends them. */
export const TOOL_CALLS: readonly unknown[] = [
  { description: "Look", prompt: "Look at it.", agent: "general", fork: false },
  { description: "Look", prompt: "Look.", agent: "general", model: "memory/m", batch_id: "b", fork: true },
  { prompt: "Go on.", resume: "ses_1" },
]
  .map((input): unknown => ({ tool: "asyncagents_task", input, ...PLACE }))
  .concat([
    { tool: "asyncagents_output", input: { task_id: "abc123", block: true, timeout: 5 }, ...PLACE },
    { tool: "asyncagents_cancel", input: { task_id: "abc123", batch_id: "b" }, ...PLACE },
    { tool: "asyncagents_list", input: { status: "running", batch_id: "b" }, ...PLACE },
    { tool: "asyncagents_clear", input: { task_id: "abc123" }, ...PLACE, waitedMs: 5, permitted: ["build"] },
  ]);
