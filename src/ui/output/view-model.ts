import { percentOf } from "../../engine/limit.ts";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import type { Text } from "../../engine/sentence.ts";
import type { Question } from "../../engine/server-model.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import { type ModelRef, shortID, type Task, waitingMessage } from "../../engine/task.ts";
import { excerptOfLines } from "../../protocol/excerpt.ts";
import type { ActivityView, QuestionView, RequestView, TaskLink, TaskView } from "../../protocol/output.ts";
import { relativePath } from "../../protocol/relative-path.ts";
import { title, visible } from "../plain-text.ts";
import { ancestors, type Family } from "../tree/family.ts";
import type { OutputEditor } from "./output-parts.ts";

/** How a task is shown. */
interface TaskWording {
  readonly translate: (text: Text) => string;
  readonly folder?: string | undefined;
  /** The tasks that were launched in place of this one. */
  readonly successors?: readonly Task[];
}

export function toTaskView(child: Child, { translate, folder, successors = [] }: TaskWording): TaskView {
  const task = isTask(child) ? child : undefined;
  return {
    kind: task ? "task" : "subagent",
    id: child.id,
    shortID: shortID(child.id),
    description: title(child.description),
    agent: child.agent && title(child.agent),
    model: child.model && modelName(child.model),
    status: child.status,
    isForked: task?.isForked ?? false,
    worktree: task?.worktree && (task.worktree.outcome ?? "open"),
    resumeCount: task?.resumeCount ?? 0,
    startedAt: child.startedAt,
    endedAt: child.endedAt,
    cost: child.cost,
    tokens: child.tokens,
    error: child.error && translate(child.error.sentence ?? child.error.message),
    nearLimit: task?.nearLimit && { scope: task.nearLimit.scope, percent: percentOf(task.nearLimit) },
    activity: toActivityView(child, folder),
    waiting: task && waitingMessage(task),
    links: task ? linksOf(task, successors) : [],
  };
}

function linksOf(task: Task, successors: readonly Task[]): TaskLink[] {
  const { insteadOf } = task;
  const before: TaskLink[] =
    insteadOf === undefined
      ? []
      : [{ kind: carriesOn(task) ? "continues" : "retries", id: insteadOf, shortID: shortID(insteadOf) }];
  const after = successors.map((next): TaskLink => ({
    kind: carriesOn(next) ? "continued-as" : "retried-as",
    id: next.id,
    shortID: shortID(next.id),
  }));
  return [...before, ...after];
}

/** Whether a task launched in place of another one continues from its conversation. */
function carriesOn({ insteadOf, forkedFrom }: Task): boolean {
  return forkedFrom === insteadOf;
}

function modelName({ providerID, modelID, variant }: ModelRef): string {
  return `${providerID}/${modelID}${variant === undefined ? "" : ` (${variant})`}`;
}

function toActivityView({ progress }: Child, folder: string | undefined): ActivityView | undefined {
  if (!progress) return undefined;
  const { phase, toolCalls, recentTools, lastUpdate, retry } = progress;
  const tool = recentTools.findLast(({ status }) => status === "running" || status === "pending");
  return {
    phase,
    toolCalls,
    tool: tool && { name: title(tool.tool), title: tool.title && title(relativePath(tool.title, folder)) },
    lastUpdate,
    retry,
  };
}

/** Whether the child is the session with that ID or one of its descendants. */
export function isWithin(family: Pick<Family, "child">, child: Child, sessionID: string): boolean {
  return child.id === sessionID || ancestors(family, child).includes(sessionID);
}

/** A request as shown in the panel of `sessionID`. */
export function toRequestView(
  { request, child }: OpenRequest<MirroredRequest>,
  sessionID: string,
  { asker: name, translate }: Pick<OutputEditor, "asker" | "translate">,
): RequestView {
  const asker = child.id === sessionID ? child.agent && visible(child.agent) : name(child);
  if (request.type === "question")
    return { kind: "question", id: request.id, asker, questions: request.questions.map(toQuestionView) };
  const { id, title, subjects, reason, diff, always } = request;
  return {
    kind: "permission",
    id,
    asker,
    title: translate(title),
    subjects,
    reason,
    diff: diff === undefined ? undefined : excerptOfLines(diff),
    always: always && translate(always),
  };
}

/** The answer keeps the agent's own label, while users see the sanitized one. */
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
