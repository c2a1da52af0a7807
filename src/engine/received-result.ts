import { english, sentence } from "./sentence.ts";
import type { Message, Part, ToolPart } from "./server-model.ts";
import { INTERRUPTED_ERROR, type NoticeState, type TaskRecord } from "./task.ts";

/* How a parent's conversation shows whether it received, or waits for, the end of a task. */

/** The metadata key of a tool call that returned how a task ended. Its value is a {@link ReceivedResult}. */
export const RESULT_MARK = "asyncagentsResult";

/** The end that a caller received: the task's ID, and when it ended (milliseconds since 1970). */
export interface ReceivedResult {
  readonly taskID: string;
  readonly endedAt: number;
}

/**
 * The tool through which an agent waits for a task. A call of the server's own tool waits, too, for the subagent that it
 * launched, which may have been adopted meanwhile.
 */
const OUTPUT_TOOL = "asyncagents_output";

/** Whether this is a call that waited for the end of a task or subagent and has returned. */
export function endsWait(part: Part): boolean {
  if (part.type !== "tool" || (part.tool !== OUTPUT_TOOL && !part.subagent)) return false;
  return part.state.status === "completed" || part.state.status === "error";
}

function calls(messages: readonly (Message | undefined)[]): readonly ToolPart[] {
  return messages.flatMap((message) => message?.parts ?? []).filter((part) => part.type === "tool");
}

function lastAnswer(conversation: readonly Message[]): Message | undefined {
  return conversation.findLast(({ info }) => info.role === "assistant");
}

/** If a call in the conversation returned this end of the task, the state of a notice that is not needed. */
export function receivedThrough(
  conversation: readonly Message[],
  record: TaskRecord,
): NoticeState | undefined {
  const made = calls(conversation);
  const reason = made.some((call) => hasResult(call, record))
    ? sentence("The parent received the result through asyncagents_output.")
    : made.some((call) => hasOutcome(call, record))
      ? sentence("The parent received the result through OpenCode's task tool.")
      : undefined;
  return reason && { state: "skipped", reason: english(reason) };
}

function hasResult({ tool, state }: ToolPart, { id, endedAt }: TaskRecord): boolean {
  if (tool !== OUTPUT_TOOL) return false;
  const mark = state.status === "completed" ? state.metadata?.[RESULT_MARK] : undefined;
  const received = (mark ?? {}) as Partial<ReceivedResult>;
  return received.taskID === id && received.endedAt === endedAt;
}

/** Whether OpenCode's own tool waited for this turn. It returns an answer, or the error that ended the turn. */
function hasOutcome({ subagent, state }: ToolPart, { id, startedAt, endedAt = 0 }: TaskRecord): boolean {
  if (state.status !== "completed" && state.status !== "error") return false;
  if (subagent?.sessionID !== id || startedAt < state.start || startedAt > state.end) return false;
  // A call that only launches a subagent returns before the end.
  return state.status === "error" || endedAt <= state.end;
}

/** Whether a call in progress may return the end of this task. A pending call counts, as its input is not known yet. */
export function isWaitingFor(conversation: readonly Message[], { id }: TaskRecord): boolean {
  return calls([lastAnswer(conversation)]).some(({ tool, state }) => {
    if (tool !== OUTPUT_TOOL) return false;
    if (state.status === "pending") return true;
    // Models copy an ID as the list shows it, followed by punctuation.
    const [reference = ""] = String(state.input["task_id"]).match(/\w+/) ?? [];
    return (
      state.status === "running" && reference !== "" && (id.startsWith(reference) || id.endsWith(reference))
    );
  });
}

/** Whether the call of OpenCode's tool that launched this task is still open, and not because its server died. */
export function isDelegated(conversation: readonly Message[], { id, error }: TaskRecord): boolean {
  if (error?.name === INTERRUPTED_ERROR) return false;
  return calls([lastAnswer(conversation)]).some(
    ({ subagent, state }) => state.status === "running" && subagent?.sessionID === id,
  );
}
