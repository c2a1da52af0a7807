import { hasArrived } from "./arrival.ts";
import {
  ABORTED,
  type AgentError,
  type AssistantMessageInfo,
  type Message,
  type Part,
  type ToolPart,
} from "./server-model.ts";

/** How many of a session's newest messages are read to determine the state of its turn. */
export const TURN_WINDOW = 20;

/** In English only, like what else is said in results, which models read. */
const CUT = "[The answer ends here: its model reached a limit, or its provider stopped it.]";

/** The metadata key of a part that marks a message sent to steer a running task. */
export const STEERING_MARK = "asyncagentsSteering";

/** The state of the turn that answers a prompt, as far as the session's messages show it. */
export type Turn =
  /** The server does not have the complete prompt. */
  | { readonly kind: "unseen" }
  /**
   * The message is stored, but there is no answer to it yet: the prompt, or one that steers the task. `at` is when the
   * last answer before it was complete, if there is one.
   */
  | { readonly kind: "unanswered"; readonly asked: string; readonly at?: number }
  /**
   * The model is writing an answer, or was interrupted. `mark` changes with every change; `at` is the latest time that
   * the answer shows.
   */
  | { readonly kind: "open"; readonly messageID: string; readonly mark: string; readonly at: number }
  /** The last step called tools. The turn continues, unless the session is idle. */
  | {
      readonly kind: "between-steps";
      readonly messageID: string;
      readonly at: number;
      readonly refused?: string | undefined;
    }
  /** The last message is a compaction summary. The turn continues, unless the session is idle. */
  | { readonly kind: "compacted"; readonly messageID: string; readonly at: number; readonly answer: string }
  | { readonly kind: "completed"; readonly messageID: string; readonly at: number; readonly answer: string }
  | { readonly kind: "failed"; readonly messageID: string; readonly at: number; readonly error: AgentError }
  | { readonly kind: "aborted"; readonly messageID: string; readonly at: number };

/** The state of a turn that has ended if its session is idle. */
export type EndedTurn = Exclude<Turn, { readonly kind: "unseen" | "unanswered" | "open" }>;

/**
 * Reads the state of a turn from the newest {@link TURN_WINDOW} messages of its session, the oldest first. Some states
 * mean an end only if the session is idle, which the caller has to check.
 */
export function readTurn(messages: readonly Message[], promptMessageID: string): Turn {
  const prompt = messages.findIndex((message) => message.info.id === promptMessageID);
  if (prompt === -1 && messages.length < TURN_WINDOW) return { kind: "unseen" };

  const since = messages.slice(prompt + 1);
  const answers = since.filter(isAnswer);
  const last = answers.at(-1);
  if (!last)
    return prompt === -1 || hasArrived(messages[prompt])
      ? { kind: "unanswered", asked: promptMessageID }
      : { kind: "unseen" };

  const { info } = last;
  if (info.completed === undefined)
    return {
      kind: "open",
      messageID: info.id,
      mark: `${info.id}/${last.parts.length}/${lastToolStatus(last)}`,
      at: Math.max(info.created, ...last.parts.flatMap(timesOf)),
    };
  const end = endOfAnswers(answers, last, info.completed);
  if (end.kind === "failed" || end.kind === "aborted") return end;
  const steering = unansweredSteering(since);
  return steering ? { kind: "unanswered", asked: steering.info.id, at: end.at } : end;
}

/** How the turn has ended if its session is idle. The last answer is complete. */
function endOfAnswers(answers: readonly Answer[], last: Answer, at: number): EndedTurn {
  const { info } = last;
  const end = { messageID: info.id, at };
  if (info.error)
    return info.error.name === ABORTED
      ? { kind: "aborted", ...end }
      : { kind: "failed", ...end, error: info.error };
  // Aborting a turn that waits for a retry leaves neither an error nor a reason.
  if (info.finish === undefined) return { kind: "aborted", ...end };
  if (info.finish === "tools") return { kind: "between-steps", ...end, refused: refusedCall(last) };
  const answer = finalAnswer(answers) ?? last;
  const kind = info.summary ? "compacted" : "completed";
  return { kind, at, messageID: answer.info.id, answer: resultText(answer) };
}

/** The last answer, or the one before it: some models write theirs beside a last tool call, and then nothing more. */
function finalAnswer(answers: readonly Answer[]): Answer | undefined {
  const [last, before] = answers.filter(({ info }) => !info.summary).reverse();
  const isBeside = before?.info.finish === "tools" && !before.info.error && answerText(before) !== "";
  return isBeside && last && answerText(last) === "" ? before : last;
}

/** Whether a message was sent to steer a running task. */
export function isSteering({ parts }: Message): boolean {
  return parts.some((part) => part.type === "text" && part.metadata?.[STEERING_MARK] !== undefined);
}

/** The last message that steers the task, unless a model was asked with it or with a later one. */
function unansweredSteering(messages: readonly Message[]): Message | undefined {
  const at = messages.findLastIndex((message) => isSteering(message) && hasArrived(message));
  if (at === -1) return undefined;
  const ids = new Set(messages.slice(at).map(({ info }) => info.id));
  return messages.some((message) => isAnswer(message) && ids.has(message.info.parentID))
    ? undefined
    : messages[at];
}

/** The present text of an answer as a result, which says so if it isn't complete. */
export function resultText(message: Message): string {
  const { info } = message;
  const text = answerText(message);
  const isCut = info.role === "assistant" && info.finish === "cut";
  return isCut && text !== "" ? `${text}\n\n${CUT}` : text;
}

/** The present text of an answer. */
export function answerText(message: Message): string {
  return message.parts
    .flatMap((part) =>
      part.type === "text" && !part.synthetic && part.text.trim() !== "" ? [part.text] : [],
    )
    .join("\n\n");
}

/** The present text of the latest answer. Undefined if there is none. */
export function lastAnswer(messages: readonly Message[]): string | undefined {
  const message = messages.findLast(({ info }) => info.role === "assistant" && !info.summary);
  return message && answerText(message);
}

type Answer = Message & { readonly info: AssistantMessageInfo };

function isAnswer(message: Message): message is Answer {
  return message.info.role === "assistant";
}

function tools(message: Message): readonly ToolPart[] {
  return message.parts.filter((part) => part.type === "tool");
}

function timesOf(part: Part): readonly number[] {
  const timed = part.type === "tool" ? part.state : part;
  const times = ["start" in timed ? timed.start : undefined, "end" in timed ? timed.end : undefined];
  return times.filter((time) => time !== undefined);
}

function lastToolStatus(message: Message): string {
  return tools(message).at(-1)?.state.status ?? "";
}

/** The tool whose permission or question a user rejected, which ends a turn without an error. */
function refusedCall(message: Message): string | undefined {
  return tools(message).find(({ state }) => state.status === "error" && state.refused === "by-user")?.tool;
}
