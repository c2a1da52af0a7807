import { english, sentence } from "./sentence.ts";
import type { Message, Part, ToolPart, ToolState } from "./server-model.ts";
import { INTERRUPTED_ERROR, type NoticeState, type TaskRecord } from "./task.ts";

/* What a parent's conversation says of its having received, or waiting for, the end of a task. */

/** The key that marks a tool call as the one through which its caller received how a task ended; see {@link ReceivedResult}. */
export const RESULT_MARK = "asyncagentsResult";

/** The end that a caller received: the task, and when it ended (milliseconds since 1970). */
export interface ReceivedResult {
  readonly taskID: string;
  readonly endedAt: number;
}

/** The tool through which an agent waits for a task. */
const OUTPUT_TOOL = "asyncagents_output";
/** OpenCode's own tool, which launches a subagent and waits for it: such a one can have been adopted meanwhile. */
const SUBAGENT_TOOL = "task";

/** Whether this is a call through which an agent waited for the end of something, and which has come back. */
export function endsWait(part: Part): boolean {
  if (part.type !== "tool" || (part.tool !== OUTPUT_TOOL && part.tool !== SUBAGENT_TOOL)) return false;
  return part.state.status === "completed" || part.state.status === "error";
}

function calls(messages: readonly Message[], tool: string): readonly ToolPart[] {
  return messages
    .flatMap(({ parts }) => parts)
    .filter((part) => part.type === "tool")
    .filter((part) => part.tool === tool);
}

/** That nobody need tell the parent, if the conversation holds a call that came back with this end of the task. */
export function receivedThrough(
  conversation: readonly Message[],
  record: TaskRecord,
): NoticeState | undefined {
  const tool = calls(conversation, OUTPUT_TOOL).some(({ state }) => hasResult(state, record))
    ? OUTPUT_TOOL
    : calls(conversation, SUBAGENT_TOOL).some(({ state }) => hasOutcome(state, record))
      ? SUBAGENT_TOOL
      : undefined;
  return tool === undefined
    ? undefined
    : {
        state: "skipped",
        reason: english(
          tool === OUTPUT_TOOL
            ? sentence("The parent received the result through asyncagents_output.")
            : sentence("The parent received the result through OpenCode's task tool."),
        ),
      };
}

function hasResult(state: ToolState, { id, endedAt }: TaskRecord): boolean {
  const mark = state.status === "completed" ? state.metadata?.[RESULT_MARK] : undefined;
  const received = (mark ?? {}) as Partial<ReceivedResult>;
  return received.taskID === id && received.endedAt === endedAt;
}

/** Whether OpenCode's own tool waited for this turn: it comes back with an answer, or with the error that ended it. */
function hasOutcome(state: ToolState, { id, startedAt, endedAt = 0 }: TaskRecord): boolean {
  if (state.status !== "completed" && state.status !== "error") return false;
  if (state.metadata?.["sessionId"] !== id || startedAt < state.start || startedAt > state.end) return false;
  // One that only launches is back at once, and knows nothing of the end.
  return state.status === "error" || endedAt <= state.end;
}

/** Whether a call waits that may come back with the end of this task: of one that just begins it is not known yet. */
export function isWaitingFor(conversation: readonly Message[], { id }: TaskRecord): boolean {
  const last = conversation.findLast(({ info }) => info.role === "assistant");
  return calls(last ? [last] : [], OUTPUT_TOOL).some(({ state }) => {
    if (state.status === "pending") return true;
    // Models write an ID as the list shows it, with a mark behind it.
    const [reference = ""] = String(state.input["task_id"]).match(/\w+/) ?? [];
    return (
      state.status === "running" && reference !== "" && (id.startsWith(reference) || id.endsWith(reference))
    );
  });
}

/** Whether the call of OpenCode's own tool still waits that launched this task; those of a server that died stay open for ever. */
export function isDelegated(conversation: readonly Message[], { id, error }: TaskRecord): boolean {
  if (error?.name === INTERRUPTED_ERROR) return false;
  const last = conversation.findLast(({ info }) => info.role === "assistant");
  return calls(last ? [last] : [], SUBAGENT_TOOL).some(
    ({ state }) => state.status === "running" && state.metadata?.["sessionId"] === id,
  );
}
