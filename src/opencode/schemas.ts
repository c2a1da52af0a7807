import * as z from "zod/mini";
import {
  ABORTED,
  type AgentError,
  type AgentInfo,
  type Message,
  type MessageInfo,
  type ModelInfo,
  type Part,
  type PermissionRequest,
  type QuestionRequest,
  type Session,
  type SessionStatus,
  type ToolState,
} from "../engine/server-model.ts";
import type { ModelRef, TokenUsage } from "../engine/task.ts";
import { filesToChange } from "./file-tools.ts";
import { readFinish } from "./finish.ts";
import { readRecord } from "./record-codec.ts";
import { tryParse } from "./validation.ts";

/*
 * The server's data as far as the extension reads it, converted for the engine. Unknown fields are dropped, so that
 * newer servers are understood. A field that is read but has an unexpected type is an error.
 */

/** A schema with a conversion to the engine's model. */
function read<S extends z.ZodMiniType, T>(schema: S, toModel: (value: z.output<S>) => T) {
  return z.pipe(schema, z.transform(toModel));
}

/** The items of a list that are understood: one of a newer server must not hide the others. */
function listOf<S extends z.ZodMiniType>(item: S) {
  return read(z.array(z.unknown()), (all) =>
    all.flatMap((each) => {
      const known = tryParse(item, each);
      return known === undefined ? [] : [known];
    }),
  );
}

const unknownRecord = z.record(z.string(), z.unknown());

const tokens = read(
  z.object({
    input: z.number(),
    output: z.number(),
    reasoning: z.number(),
    cache: z.object({ read: z.number(), write: z.number() }),
  }),
  ({ cache, ...usage }): TokenUsage => ({ ...usage, cacheRead: cache.read, cacheWrite: cache.write }),
);
const NO_TOKENS: TokenUsage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** The server writes "default" if no variant was chosen. */
function modelRef(providerID: string, modelID: string, variant: string | null | undefined): ModelRef {
  return !variant || variant === "default" ? { providerID, modelID } : { providerID, modelID, variant };
}

const permissionRules = z.array(
  z.object({ permission: z.string(), pattern: z.string(), action: z.enum(["allow", "deny", "ask"]) }),
);

/** A session including its metadata. */
export const storedSession = z.object({
  id: z.string(),
  title: z.string(),
  directory: z.string(),
  parentID: z.optional(z.string()),
  agent: z.optional(z.string()),
  model: z.optional(z.object({ id: z.string(), providerID: z.string(), variant: z.optional(z.string()) })),
  metadata: z.optional(unknownRecord),
  cost: z.optional(z.number()),
  tokens: z.optional(tokens),
  permission: z.optional(z.unknown()),
  revert: z.catch(z.nullish(z.object({ messageID: z.string(), partID: z.optional(z.string()) })), undefined),
  time: z.object({ created: z.number(), updated: z.number(), archived: z.optional(z.number()) }),
});

export const session = read(storedSession, toSession);

export function toSession(stored: z.output<typeof storedSession>): Session {
  const { id, title, directory, parentID, agent, model, permission, revert, time } = stored;
  const { cost = 0, tokens = NO_TOKENS } = stored;
  return {
    id,
    // OpenCode appends the agent to the titles of subagents.
    title: parentID === undefined ? title : title.replace(/ \(@\S+ subagent\)$/, ""),
    directory,
    parentID,
    agent,
    model: model && modelRef(model.providerID, model.id, model.variant),
    created: time.created,
    updated: time.updated,
    // The server writes 0 when a session is no longer archived.
    archived: time.archived || undefined,
    cost,
    tokens,
    permission: z.safeParse(permissionRules, permission ?? []).data,
    undoneFrom: revert ?? undefined,
    task: readRecord(stored),
  };
}

export const sessionStatus = z.union([
  z.object({ type: z.literal("idle") }),
  z.object({ type: z.literal("retry"), attempt: z.number(), message: z.string(), next: z.number() }),
  // Only idle ends a turn, so any other status means work.
  read(z.object({ type: z.string() }), () => ({ type: "busy" as const })),
]) satisfies z.ZodMiniType<SessionStatus>;

/** The name of the error that OpenCode reports when someone stopped the turn. */
export const ABORTED_ERROR = "MessageAbortedError";

/** `data` differs by error type. Its `message`, if any, is readable for users. */
export const agentError = read(
  z.object({ name: z.string(), data: z.optional(z.unknown()) }),
  ({ name, data }): AgentError => {
    const message = (data as { message?: unknown } | null | undefined)?.message;
    return {
      name: name === ABORTED_ERROR ? ABORTED : name,
      message: typeof message === "string" && message ? message : name,
    };
  },
);

const messageBase = { id: z.string(), sessionID: z.string(), agent: z.string() };

export const messageInfo = z.discriminatedUnion("role", [
  read(
    z.object({
      ...messageBase,
      role: z.literal("user"),
      time: z.object({ created: z.number() }),
      model: z.optional(
        z.object({ providerID: z.string(), modelID: z.string(), variant: z.optional(z.string()) }),
      ),
    }),
    ({ time, model, ...info }): MessageInfo => ({
      ...info,
      ...time,
      model: model && modelRef(model.providerID, model.modelID, model.variant),
    }),
  ),
  read(
    z.object({
      ...messageBase,
      role: z.literal("assistant"),
      parentID: z.string(),
      time: z.object({ created: z.number(), completed: z.optional(z.number()) }),
      modelID: z.string(),
      providerID: z.string(),
      variant: z.optional(z.string()),
      finish: z.optional(z.string()),
      error: z.optional(agentError),
      cost: z.number(),
      tokens,
      summary: z._default(z.boolean(), false),
    }),
    ({ time, providerID, modelID, variant, finish, ...info }): MessageInfo => ({
      ...info,
      ...time,
      finish: readFinish(finish),
      model: modelRef(providerID, modelID, variant),
    }),
  ),
]);

const partBase = { id: z.string(), sessionID: z.string(), messageID: z.string() };
const optionalSpan = z.optional(z.object({ start: z.optional(z.number()), end: z.optional(z.number()) }));

/** OpenCode's tool that launches a subagent and waits for it. */
export const SUBAGENT_TOOL = "task";

/** The errors of calls that OpenCode refuses: by a user, or deeper than `subagent_depth` allows. */
function refusal(error: string): "by-user" | "too-deep" | undefined {
  if (/rejected permission|dismissed this question/.test(error)) return "by-user";
  return error.startsWith("Subagent depth limit reached") ? "too-deep" : undefined;
}

const span = z.object({ start: z.number(), end: z.number() });

const attachedFile = { mime: z.string(), filename: z.optional(z.string()), url: z.string() };

const toolState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("pending"), input: unknownRecord }),
  read(
    z.object({
      status: z.literal("running"),
      input: unknownRecord,
      title: z.optional(z.string()),
      metadata: z.optional(unknownRecord),
      time: z.object({ start: z.number() }),
    }),
    ({ time, ...state }): ToolState => ({ ...state, ...time }),
  ),
  read(
    z.object({
      status: z.literal("completed"),
      input: unknownRecord,
      output: z.string(),
      attachments: z.catch(z.optional(z.array(z.object(attachedFile))), undefined),
      title: z.string(),
      metadata: z.optional(unknownRecord),
      time: z.object({ start: z.number(), end: z.number(), compacted: z.optional(z.number()) }),
    }),
    ({ time: { compacted, ...time }, ...state }): ToolState => ({
      ...state,
      ...time,
      ...(compacted && { isCleared: true }),
    }),
  ),
  read(
    z.object({
      status: z.literal("error"),
      input: unknownRecord,
      error: z.string(),
      metadata: z.optional(unknownRecord),
      time: span,
    }),
    ({ time, ...state }): ToolState => {
      const refused = refusal(state.error);
      const { interrupted, output } = state.metadata ?? {};
      const partialOutput = interrupted === true && typeof output === "string" ? output : undefined;
      return {
        ...state,
        ...time,
        ...(refused && { refused }),
        ...(partialOutput !== undefined && { partialOutput }),
      };
    },
  ),
]);

function launchedSession(state: ToolState): string | undefined {
  const id = "metadata" in state ? state.metadata?.["sessionId"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** The part types that are read completely. */
const knownPart = z.discriminatedUnion("type", [
  read(
    z.object({
      ...partBase,
      type: z.literal("text"),
      text: z.string(),
      synthetic: z._default(z.boolean(), false),
      ignored: z.optional(z.boolean()),
      time: optionalSpan,
      metadata: z.optional(unknownRecord),
    }),
    ({ time, ignored, ...part }): Part => ({ ...part, ...(ignored && { ignored }), ...time }),
  ),
  read(
    z.object({ ...partBase, type: z.literal("reasoning"), text: z.string(), time: optionalSpan }),
    ({ time, ...part }): Part => ({ ...part, ...time }),
  ),
  read(
    z.object({
      ...partBase,
      type: z.literal("tool"),
      tool: z.string(),
      callID: z.string(),
      state: toolState,
    }),
    (part): Part =>
      part.tool === SUBAGENT_TOOL ? { ...part, subagent: { sessionID: launchedSession(part.state) } } : part,
  ),
  z.object({
    ...partBase,
    type: z.literal("file"),
    ...attachedFile,
  }),
]);
const KNOWN_TYPES: readonly string[] = ["text", "reasoning", "tool", "file"] satisfies Part["type"][];

export const part = read(
  z.looseObject({ ...partBase, type: z.string(), tail_start_id: z.optional(z.string()) }),
  (value): Part => {
    const { id, sessionID, messageID, type, tail_start_id: tailStartID } = value;
    // A single part of unknown shape must not hide the whole conversation.
    return (
      (KNOWN_TYPES.includes(type) ? tryParse(knownPart, value) : undefined) ?? {
        type: "other",
        kind: type,
        id,
        sessionID,
        messageID,
        ...(tailStartID && { tailStartID }),
      }
    );
  },
);

export const message = z.object({ info: messageInfo, parts: z.array(part) }) satisfies z.ZodMiniType<Message>;

const agent = read(
  z.object({
    name: z.string(),
    // Fields are null if an agent in the user's configuration does not set them.
    description: z.nullish(z.string()),
    mode: z.enum(["primary", "subagent", "all"]),
    hidden: z.nullish(z.boolean()),
    model: z.nullish(z.object({ providerID: z.string(), modelID: z.string() })),
    variant: z.nullish(z.string()),
    permission: z.nullish(permissionRules),
  }),
  ({ name, description, mode, hidden, model, variant, permission }): AgentInfo => ({
    name,
    description: description ?? undefined,
    mode,
    hidden: hidden ?? false,
    model: model ? modelRef(model.providerID, model.modelID, variant) : undefined,
    permission: permission ?? [],
  }),
);

/** The default agent of OpenCode's tool for subagents. */
const DEFAULT_SUBAGENT = "general";

/** In the order in which they are offered for a task. */
export const agents = read(z.array(agent), (all): AgentInfo[] => {
  const rank = ({ name, mode }: AgentInfo): number =>
    name === DEFAULT_SUBAGENT ? 0 : mode === "primary" ? 2 : 1;
  return all.toSorted((a, b) => rank(a) - rank(b));
});

export const models = read(
  z.object({
    providers: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        models: z.record(
          z.string(),
          z.object({
            id: z.string(),
            name: z.string(),
            limit: z.optional(z.object({ context: z.optional(z.number()) })),
          }),
        ),
      }),
    ),
  }),
  ({ providers }): ModelInfo[] =>
    providers.flatMap((provider) =>
      Object.values(provider.models).map((model) => ({
        ref: { providerID: provider.id, modelID: model.id },
        name: model.name,
        provider: provider.name,
        // The server writes 0 if the limit is unknown.
        contextLimit: model.limit?.context || undefined,
      })),
    ),
);

export const permissionRequest = read(
  z.object({
    id: z.string(),
    sessionID: z.string(),
    permission: z.string(),
    patterns: z.array(z.string()),
    always: z.array(z.string()),
    metadata: z._default(unknownRecord, {}),
    tool: z.nullish(z.object({ messageID: z.string(), callID: z.string() })),
  }),
  ({ tool: call, ...asked }): PermissionRequest => {
    const files = filesToChange(asked);
    return { type: "permission", ...asked, files, call: call ?? undefined };
  },
);
export const permissionRequests = listOf(permissionRequest);

export const questionRequest = read(
  z.object({
    id: z.string(),
    sessionID: z.string(),
    questions: z.array(
      z.object({
        question: z.string(),
        header: z.string(),
        options: z.array(z.object({ label: z.string(), description: z.string() })),
        multiple: z._default(z.boolean(), false),
        // Users may answer in their own words unless the server says otherwise.
        custom: z._default(z.boolean(), true),
      }),
    ),
  }),
  (request): QuestionRequest => ({ type: "question", ...request }),
);
export const questionRequests = listOf(questionRequest);

export const health = z.object({ healthy: z.boolean(), version: z.string() });

/** What a server of version 2 says about itself at `/api/info`. */
export const nextMajorInfo = z.object({ version: z.string() });

/** `worktree` is `/` outside of Git repositories. */
export const folderPath = z.object({ directory: z.string(), worktree: z.optional(z.string()) });
