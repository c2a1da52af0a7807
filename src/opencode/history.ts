import {
  ABORTED,
  type AgentError,
  type AttachedFile,
  type Message,
  type MessageInfo,
  type Part,
  type ToolState,
} from "../engine/server-model.ts";
import type { Random } from "../engine/ids.ts";
import { freshID } from "../engine/ids.ts";
import { finishReason } from "./finish.ts";
import { ABORTED_ERROR } from "./schemas.ts";

/** An event for the server's `POST /sync/replay`. Takes the changes of one session, numbered without gaps. */
export interface ReplayEvent {
  readonly id: string;
  readonly aggregateID: string;
  readonly seq: number;
  readonly type: "message.updated.1" | "message.part.updated.1" | "session.updated.1";
  readonly data: Record<string, unknown>;
}

const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };
/** The usage of a session that has not asked a model yet. */
export const NOTHING_SPENT = { cost: 0, tokens: NO_TOKENS };

/** The IDs of a part. */
interface Place {
  readonly id: string;
  readonly messageID: string;
  readonly sessionID: string;
}

export interface ReplayTarget {
  readonly sessionID: string;
  readonly directory: string;
}

/**
 * The events that write a conversation into a new session. Messages and parts get new IDs. Usage (tokens, cost) is left
 * out, as it does not belong to the new session.
 */
export function historyEvents(
  messages: readonly Message[],
  target: ReplayTarget,
  now: number,
  random: Random,
): readonly ReplayEvent[] {
  const { sessionID } = target;
  const newIDs = new Map<string, string>();
  const events: Omit<ReplayEvent, "id" | "aggregateID" | "seq">[] = [];
  let lastUserID = "";
  let created = 0;
  for (const { info, parts } of messages) {
    // The server sorts messages by time, and the parts of a message by ID.
    created = Math.max(info.created, created + 1);
    const id = freshID("msg", created, random);
    newIDs.set(info.id, id);
    if (info.role === "user") lastUserID = id;
    const parentID = info.role === "assistant" ? (newIDs.get(info.parentID) ?? lastUserID) : undefined;
    events.push({
      type: "message.updated.1",
      data: { sessionID, info: wireInfo({ ...info, created }, { id, parentID, target, now }) },
    });
    for (const [rank, part] of parts.entries()) {
      const own = { id: freshID("prt", created, random, rank), messageID: id, sessionID };
      const content = wirePart(part, own, now);
      if (!content) continue;
      events.push({
        type: "message.part.updated.1",
        data: { sessionID, time: now, part: { ...own, ...content } },
      });
    }
  }
  // Number 0 is the creation of the session.
  return events.map((event, index) => ({
    ...event,
    id: freshID("evt", now, random),
    aggregateID: sessionID,
    seq: index + 1,
  }));
}

/** The event that changes the properties of a session that holds a copied conversation and has not changed since. */
export function sessionEvent(
  sessionID: string,
  info: Record<string, unknown>,
  messages: readonly Message[],
  now: number,
  random: Random,
): ReplayEvent {
  // So far there were the creation, the messages and the parts, numbered from 0.
  const seq = messages.reduce((count, { parts }) => count + 1 + parts.length, 1);
  const id = freshID("evt", now, random);
  return { id, aggregateID: sessionID, seq, type: "session.updated.1", data: { sessionID, info } };
}

function wireInfo(
  info: MessageInfo,
  to: {
    readonly id: string;
    readonly parentID: string | undefined;
    readonly target: ReplayTarget;
    readonly now: number;
  },
): Record<string, unknown> {
  const { id, parentID, target, now } = to;
  const { sessionID, directory } = target;
  if (info.role === "user") {
    const { created, agent, model } = info;
    return { id, sessionID, role: "user", time: { created }, agent, ...(model && { model: { ...model } }) };
  }
  const { created, completed = now, agent, model, finish, error } = info;
  const { providerID, modelID, variant } = model;
  return {
    id,
    sessionID,
    role: "assistant",
    time: { created, completed },
    parentID,
    providerID,
    modelID,
    ...(variant !== undefined && { variant }),
    agent,
    mode: agent,
    path: { cwd: directory, root: directory },
    cost: 0,
    tokens: NO_TOKENS,
    ...(finish && { finish: finishReason(finish) }),
    ...(error && { error: wireError(error) }),
  };
}

/** Some of the server's errors require data that is not known here, so all but aborts become `UnknownError`. */
function wireError({ name, message }: AgentError): Record<string, unknown> {
  return { name: name === ABORTED ? ABORTED_ERROR : "UnknownError", data: { message } };
}

/** Undefined for parts that models do not read. */
function wirePart(part: Part, own: Place, now: number): Record<string, unknown> | undefined {
  switch (part.type) {
    case "text": {
      const { text, synthetic, metadata } = part;
      return { type: "text", text, ...(synthetic && { synthetic }), ...(metadata && { metadata }) };
    }
    case "file":
      return wireFile(part);
    case "tool":
      return { type: "tool", tool: part.tool, callID: part.callID, state: wireState(part.state, own, now) };
    case "reasoning":
    case "other":
      return undefined;
  }
}

function wireFile({ mime, filename, url }: AttachedFile): Record<string, unknown> {
  return { type: "file", mime, ...(filename !== undefined && { filename }), url };
}

function wireState(state: ToolState, own: Place, now: number): Record<string, unknown> {
  const { input } = state;
  switch (state.status) {
    case "completed": {
      const { output, title, start, end } = state;
      const attachments = state.attachments?.map((file, at) => {
        return { ...own, id: `${own.id}${at}`, ...wireFile(file) };
      });
      const content = { input, output, title, ...(attachments && { attachments }) };
      return { status: "completed", ...content, metadata: {}, time: { start, end } };
    }
    case "error":
      return { status: "error", input, error: state.error, time: { start: state.start, end: state.end } };
    case "pending":
    case "running":
      // Nothing will finish the call in the new session.
      return {
        status: "error",
        input,
        error: "The call was not finished.",
        time: { start: "start" in state ? state.start : now, end: now },
      };
  }
}
