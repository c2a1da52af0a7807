import type { OpenRequest } from "../../engine/engine.ts";
import type { PermissionRequest, Question } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import type { QuestionView, RequestView } from "../../protocol/output.ts";
import { visible } from "../plain-text.ts";
import { ancestors, type Family } from "../tree/family.ts";
import { proposedDiff, requestReason, text } from "../requests/request-facts.ts";
import { excerptOfLines } from "./view-model.ts";

/** What is said of requests wherever they are shown. */
export interface RequestWording {
  title(request: PermissionRequest): string;
  asker(child: Child): string;
  always(request: PermissionRequest): string;
}

/** Whether the child is the session of that ID, or anywhere below it. */
export function isWithin(family: Pick<Family, "child">, child: Child, sessionID: string): boolean {
  return child.id === sessionID || ancestors(family, child).includes(sessionID);
}

/**
 * What the panel of `sessionID` shows of a request.
 * @param input what the tool that asks was called with, once that is known
 */
export function toRequestView(
  { request, child }: OpenRequest,
  sessionID: string,
  wording: RequestWording,
  input?: Readonly<Record<string, unknown>>,
): RequestView {
  const { id } = request;
  const asker = child.id === sessionID ? child.agent && visible(child.agent) : wording.asker(child);
  if (request.type === "question")
    return { kind: "question", id, asker, questions: request.questions.map(toQuestionView) };
  const diff = proposedDiff(request);
  const subjects = subjectsOf(request);
  return {
    kind: "permission",
    id,
    asker,
    title: wording.title(request),
    subjects,
    reason: requestReason(request, subjects.join("\n"), input),
    diff: diff === undefined ? undefined : excerptOfLines(visible(diff)),
    always: request.always.length > 0 ? wording.always(request) : undefined,
  };
}

/** What is chosen goes back as the agent wrote it. */
function toQuestionView({ question, header, options, ...how }: Question): QuestionView {
  return {
    ...how,
    question: visible(question),
    header: visible(header),
    options: options.map(({ label, description }) => ({
      answer: label,
      label: visible(label),
      description: visible(description),
    })),
  };
}

/** The patterns, and before them what they stand for where that says more. */
function subjectsOf({ patterns, metadata }: PermissionRequest): readonly string[] {
  const command = text(metadata["command"]);
  const input = metadata["input"];
  return [
    ...(command === undefined || patterns.includes(command) ? [] : [command]),
    ...patterns.filter((pattern) => pattern !== "*"),
    ...(typeof input === "object" && input !== null ? [JSON.stringify(input, undefined, 2)] : []),
  ].map(visible);
}
