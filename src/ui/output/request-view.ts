import type { OpenRequest } from "../../engine/engine.ts";
import type { PermissionRequest } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import type { RequestView } from "../../protocol/output.ts";
import { excerptOfLines } from "./excerpt.ts";

/** Whether the child is the session of that ID, or anywhere below it. */
export function isWithin(
  child: Child,
  sessionID: string,
  childOf: (id: string) => Child | undefined,
): boolean {
  for (let at: Child | undefined = child; at; at = childOf(at.parentSessionID))
    if (at.id === sessionID) return true;
  return false;
}

/** What the panel of `sessionID` shows of a request. */
export function toRequestView({ request, child }: OpenRequest, sessionID: string): RequestView {
  const { id } = request;
  const description = child.id === sessionID ? undefined : child.description;
  const asker = { agent: child.agent, description };
  if (request.type === "question") return { kind: "question", id, asker, questions: request.questions };
  const diff = requestDiff(request);
  return {
    kind: "permission",
    id,
    asker,
    permission: request.permission,
    subjects: subjectsOf(request),
    reason: text(request.metadata["reason"]) ?? text(request.metadata["description"]),
    diff: diff === undefined ? undefined : excerptOfLines(diff),
    always: request.always,
  };
}

/** What the call that asks would change in files, as a unified diff. */
export function requestDiff({ metadata }: PermissionRequest): string | undefined {
  return text(metadata["diff"]);
}

/** The patterns, and before them what they stand for where that says more. */
function subjectsOf({ patterns, metadata }: PermissionRequest): readonly string[] {
  const command = text(metadata["command"]);
  const input = metadata["input"];
  return [
    ...(command === undefined || patterns.includes(command) ? [] : [command]),
    ...patterns.filter((pattern) => pattern !== "*"),
    ...(typeof input === "object" && input !== null ? [JSON.stringify(input, undefined, 2)] : []),
  ];
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
