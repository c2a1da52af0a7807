import type { PendingRequest } from "../../engine/server-model.ts";
import { visible } from "../plain-text.ts";

/**
 * The agent's own reason for a request, unless it is already part of the subject.
 * @param subject the subject as shown to the user
 * @param input the input of the tool call that asks
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

/** The change that an agent proposes to make to files, as a unified diff. */
export function proposedDiff(request: PendingRequest): string | undefined {
  return request.type === "permission" ? text(request.metadata["diff"]) : undefined;
}

/** The value if it is a non-blank string; servers and models may send anything. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
