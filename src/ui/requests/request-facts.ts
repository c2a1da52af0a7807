import type { PendingRequest } from "../../engine/server-model.ts";
import { visible } from "../plain-text.ts";

/**
 * Why the agent wants it, in its own words, where it gave a reason that is not shown already.
 * @param subject what is shown of what it is about
 * @param input what the tool that asks was called with
 */
export function requestReason(
  request: PendingRequest,
  subject: string,
  input?: Readonly<Record<string, unknown>>,
): string | undefined {
  if (request.type === "question") return undefined;
  const { metadata } = request;
  const reason = text(metadata["reason"]) ?? text(metadata["description"]) ?? text(input?.["description"]);
  return reason === undefined || subject.includes(reason) ? undefined : visible(reason);
}

/** The change that an agent wants to make in files, as a unified diff. */
export function proposedDiff(request: PendingRequest): string | undefined {
  return request.type === "permission" ? text(request.metadata["diff"]) : undefined;
}

/** A text that says something; what servers and models send may be anything. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
