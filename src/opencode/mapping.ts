import type {
  AgentError,
  AgentInfo,
  Message,
  MessageInfo,
  ModelInfo,
  Part,
  PermissionRequest,
  PermissionRule,
  QuestionRequest,
  Session,
  ToolState,
} from "../engine/server-model.ts";
import type { ModelRef, TokenUsage } from "../engine/task.ts";
import { readRecord } from "./record-codec.ts";
import * as wire from "./schemas.ts";
import type {
  WireAgentError,
  WireKnownPart,
  WireMessageInfo,
  WirePermissionRequest,
  WireQuestionRequest,
  WireSession,
  WireToolState,
} from "./schemas.ts";

/*
 * From what the server sends to what the engine knows. Everything here throws a `Misfit` if the value does not fit;
 * `at` says where the value stood, for its message.
 */

const NO_TOKENS: TokenUsage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

export function toSession(raw: unknown, at?: string): Session {
  return mapSession(wire.fit(wire.session, raw, at));
}

export function toSessions(raw: unknown): Session[] {
  return wire.fit(wire.sessions, raw).map(mapSession);
}

function mapSession(session: WireSession): Session {
  return {
    id: session.id,
    title: session.title,
    directory: session.directory,
    parentID: session.parentID,
    agent: session.agent,
    model: session.model && modelRef(session.model.providerID, session.model.id, session.model.variant),
    created: session.time.created,
    updated: session.time.updated,
    // 0 is how the server takes an archived session back.
    archived: session.time.archived || undefined,
    cost: session.cost ?? 0,
    tokens: session.tokens ? tokenUsage(session.tokens) : NO_TOKENS,
    task: readRecord(session),
  };
}

/** "default" is how the server writes that no variant was chosen. */
function modelRef(providerID: string, modelID: string, variant: string | undefined): ModelRef {
  return variant === undefined || variant === "default"
    ? { providerID, modelID }
    : { providerID, modelID, variant };
}

function tokenUsage(tokens: NonNullable<WireSession["tokens"]>): TokenUsage {
  return {
    input: tokens.input,
    output: tokens.output,
    reasoning: tokens.reasoning,
    cacheRead: tokens.cache.read,
    cacheWrite: tokens.cache.write,
  };
}

/** The rules that a session itself has. */
export function toPermissions(raw: unknown): readonly PermissionRule[] {
  return wire.fit(wire.sessionPermission, raw).permission ?? [];
}

export function toMessageInfo(raw: unknown, at?: string): MessageInfo {
  return mapMessageInfo(wire.fit(wire.messageInfo, raw, at));
}

function mapMessageInfo(info: WireMessageInfo): MessageInfo {
  const { id, sessionID, agent } = info;
  const created = info.time.created;
  if (info.role === "user")
    return {
      role: "user",
      id,
      sessionID,
      created,
      agent,
      model: info.model && modelRef(info.model.providerID, info.model.modelID, info.model.variant),
    };
  return {
    role: "assistant",
    id,
    sessionID,
    parentID: info.parentID,
    created,
    completed: info.time.completed,
    agent,
    model: modelRef(info.providerID, info.modelID, info.variant),
    finish: info.finish,
    error: info.error && mapError(info.error),
    cost: info.cost,
    tokens: tokenUsage(info.tokens),
    summary: info.summary ?? false,
  };
}

export function toAgentError(raw: unknown, at?: string): AgentError {
  return mapError(wire.fit(wire.agentError, raw, at));
}

function mapError({ name, data }: WireAgentError): AgentError {
  const message = (data as { message?: unknown } | null | undefined)?.message;
  return { name, message: typeof message === "string" && message ? message : name };
}

export function toMessage(raw: unknown): Message {
  return mapMessage(wire.fit(wire.message, raw), "");
}

export function toMessages(raw: unknown): Message[] {
  return wire.fit(wire.messages, raw).map((message, index) => mapMessage(message, `[${index}].`));
}

function mapMessage({ info, parts }: { info: WireMessageInfo; parts: unknown[] }, at: string): Message {
  return {
    info: mapMessageInfo(info),
    parts: parts.map((part, index) => toPart(part, `${at}parts[${index}]`)),
  };
}

export function toPart(raw: unknown, at?: string): Part {
  if (wire.KNOWN_PART_TYPES.has((raw as { type?: unknown } | null)?.type)) {
    const known = wire.tryFit(wire.knownPart, raw);
    // One part in a shape that is not known must not hide the whole conversation.
    if (known) return mapPart(known);
  }
  const { id, sessionID, messageID, type, tail_start_id: tailStartID } = wire.fit(wire.anyPart, raw, at);
  return { type: "other", kind: type, id, sessionID, messageID, ...(tailStartID && { tailStartID }) };
}

function mapPart(part: WireKnownPart): Part {
  const { id, sessionID, messageID } = part;
  const base = { id, sessionID, messageID };
  switch (part.type) {
    case "text":
      return {
        ...base,
        type: "text",
        text: part.text,
        synthetic: part.synthetic ?? false,
        ...(part.ignored && { ignored: true }),
        start: part.time?.start,
        end: part.time?.end,
        metadata: part.metadata,
      };
    case "reasoning":
      return { ...base, type: "reasoning", text: part.text, start: part.time?.start, end: part.time?.end };
    case "tool":
      return { ...base, type: "tool", tool: part.tool, callID: part.callID, state: mapToolState(part.state) };
    case "file":
      return { ...base, type: "file", mime: part.mime, filename: part.filename, url: part.url };
  }
}

/** How OpenCode's tool for subagents refuses one that is deeper than `subagent_depth` allows. */
const SUBAGENT_DEPTH = "Subagent depth limit reached";

function mapToolState(state: WireToolState): ToolState {
  if (state.status === "pending") return state;
  const { time, ...rest } = state;
  const isTooDeep = state.status === "error" && state.error.startsWith(SUBAGENT_DEPTH);
  return { ...rest, ...time, ...(isTooDeep && { isTooDeep }) } as ToolState;
}

export function toAgents(raw: unknown): AgentInfo[] {
  return wire
    .fit(wire.agents, raw)
    .map(({ name, description, mode, hidden, model, variant, permission }) => ({
      name,
      description: description ?? undefined,
      mode,
      hidden: hidden ?? false,
      model: model ? modelRef(model.providerID, model.modelID, variant ?? undefined) : undefined,
      permission: permission ?? [],
    }));
}

export function toModels(raw: unknown): ModelInfo[] {
  return wire.fit(wire.providers, raw).providers.flatMap((provider) =>
    Object.values(provider.models).map((model) => ({
      ref: { providerID: provider.id, modelID: model.id },
      name: model.name,
      provider: provider.name,
      // 0 is how the server writes that it does not know.
      contextLimit: model.limit?.context || undefined,
    })),
  );
}

export function toPermissionRequest(raw: unknown, at?: string): PermissionRequest {
  return mapPermission(wire.fit(wire.permissionRequest, raw, at));
}

export function toPermissionRequests(raw: unknown): PermissionRequest[] {
  return wire.fit(wire.permissionRequests, raw).map(mapPermission);
}

function mapPermission({ tool, ...request }: WirePermissionRequest): PermissionRequest {
  return { type: "permission", ...request, metadata: request.metadata ?? {}, call: tool ?? undefined };
}

export function toQuestionRequest(raw: unknown, at?: string): QuestionRequest {
  return mapQuestion(wire.fit(wire.questionRequest, raw, at));
}

export function toQuestionRequests(raw: unknown): QuestionRequest[] {
  return wire.fit(wire.questionRequests, raw).map(mapQuestion);
}

function mapQuestion(request: WireQuestionRequest): QuestionRequest {
  return {
    type: "question",
    id: request.id,
    sessionID: request.sessionID,
    questions: request.questions.map((question) => ({
      ...question,
      multiple: question.multiple ?? false,
      // The server lets people answer in their own words unless it says otherwise.
      custom: question.custom ?? true,
    })),
  };
}
