import * as z from "zod/mini";

/*
 * What the server sends, as far as this product reads it. Unknown fields pass and are dropped, so a newer server
 * that says more is understood; a field that is read and does not fit is a misfit, reported where it is read.
 */

const unknownRecord = z.record(z.string(), z.unknown());

const tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cache: z.object({ read: z.number(), write: z.number() }),
});

export const session = z.object({
  id: z.string(),
  title: z.string(),
  directory: z.string(),
  parentID: z.optional(z.string()),
  agent: z.optional(z.string()),
  model: z.optional(z.object({ id: z.string(), providerID: z.string(), variant: z.optional(z.string()) })),
  metadata: z.optional(unknownRecord),
  cost: z.optional(z.number()),
  tokens: z.optional(tokens),
  time: z.object({ created: z.number(), updated: z.number(), archived: z.optional(z.number()) }),
});
export type WireSession = z.infer<typeof session>;
export const sessions = z.array(session);

export const sessionStatus = z.discriminatedUnion("type", [
  z.object({ type: z.literal("idle") }),
  z.object({ type: z.literal("busy") }),
  z.object({ type: z.literal("retry"), attempt: z.number(), message: z.string(), next: z.number() }),
]);
export const sessionStatuses = z.record(z.string(), sessionStatus);

/** `data` differs by error type; what people can read is its `message`, where there is one. */
export const agentError = z.object({ name: z.string(), data: z.optional(z.unknown()) });
export type WireAgentError = z.infer<typeof agentError>;

const messageBase = { id: z.string(), sessionID: z.string(), agent: z.string() };

export const messageInfo = z.discriminatedUnion("role", [
  z.object({
    ...messageBase,
    role: z.literal("user"),
    time: z.object({ created: z.number() }),
    model: z.optional(
      z.object({ providerID: z.string(), modelID: z.string(), variant: z.optional(z.string()) }),
    ),
  }),
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
    summary: z.optional(z.boolean()),
  }),
]);
export type WireMessageInfo = z.infer<typeof messageInfo>;

const partBase = { id: z.string(), sessionID: z.string(), messageID: z.string() };
const optionalSpan = z.object({ start: z.optional(z.number()), end: z.optional(z.number()) });

const toolState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("pending"), input: unknownRecord }),
  z.object({
    status: z.literal("running"),
    input: unknownRecord,
    title: z.optional(z.string()),
    metadata: z.optional(unknownRecord),
    time: z.object({ start: z.number() }),
  }),
  z.object({
    status: z.literal("completed"),
    input: unknownRecord,
    output: z.string(),
    title: z.string(),
    metadata: z.optional(unknownRecord),
    time: z.object({ start: z.number(), end: z.number() }),
  }),
  z.object({
    status: z.literal("error"),
    input: unknownRecord,
    error: z.string(),
    metadata: z.optional(unknownRecord),
    time: z.object({ start: z.number(), end: z.number() }),
  }),
]);
export type WireToolState = z.infer<typeof toolState>;

/** The parts that are read in full. */
export const knownPart = z.discriminatedUnion("type", [
  z.object({
    ...partBase,
    type: z.literal("text"),
    text: z.string(),
    synthetic: z.optional(z.boolean()),
    ignored: z.optional(z.boolean()),
    time: z.optional(optionalSpan),
    metadata: z.optional(unknownRecord),
  }),
  z.object({ ...partBase, type: z.literal("reasoning"), text: z.string(), time: z.optional(optionalSpan) }),
  z.object({ ...partBase, type: z.literal("tool"), tool: z.string(), callID: z.string(), state: toolState }),
  z.object({
    ...partBase,
    type: z.literal("file"),
    mime: z.string(),
    filename: z.optional(z.string()),
    url: z.string(),
  }),
]);
export type WireKnownPart = z.infer<typeof knownPart>;
export const KNOWN_PART_TYPES: ReadonlySet<unknown> = new Set<WireKnownPart["type"]>([
  "text",
  "reasoning",
  "tool",
  "file",
]);

/** Every other part, of a type known or yet unknown. */
export const anyPart = z.object({ ...partBase, type: z.string(), tail_start_id: z.optional(z.string()) });

/** Parts stay raw: which schema fits depends on their type. */
export const message = z.object({ info: messageInfo, parts: z.array(z.unknown()) });
export const messages = z.array(message);

const permissionRules = z.array(
  z.object({ permission: z.string(), pattern: z.string(), action: z.enum(["allow", "deny", "ask"]) }),
);

/** A session, as far as its own rules go. */
export const sessionPermission = z.object({ permission: z.nullish(permissionRules) });

export const agents = z.array(
  z.object({
    name: z.string(),
    // Null what an agent of the user's own configuration does not say.
    description: z.nullish(z.string()),
    mode: z.enum(["primary", "subagent", "all"]),
    hidden: z.nullish(z.boolean()),
    model: z.nullish(z.object({ providerID: z.string(), modelID: z.string() })),
    variant: z.nullish(z.string()),
    permission: z.nullish(permissionRules),
  }),
);

export const providers = z.object({
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
});

export const permissionRequest = z.object({
  id: z.string(),
  sessionID: z.string(),
  permission: z.string(),
  patterns: z.array(z.string()),
  always: z.array(z.string()),
  metadata: z.optional(unknownRecord),
  tool: z.nullish(z.object({ messageID: z.string(), callID: z.string() })),
});
export type WirePermissionRequest = z.infer<typeof permissionRequest>;
export const permissionRequests = z.array(permissionRequest);

export const questionRequest = z.object({
  id: z.string(),
  sessionID: z.string(),
  questions: z.array(
    z.object({
      question: z.string(),
      header: z.string(),
      options: z.array(z.object({ label: z.string(), description: z.string() })),
      multiple: z.optional(z.boolean()),
      custom: z.optional(z.boolean()),
    }),
  ),
});
export type WireQuestionRequest = z.infer<typeof questionRequest>;
export const questionRequests = z.array(questionRequest);

export const health = z.object({ healthy: z.boolean(), version: z.string() });

export const folderPath = z.object({ directory: z.string() });

/** Thrown where a value does not fit its schema; the message names the field. */
export class Misfit extends Error {
  override readonly name = "Misfit";
}

/** The value as the schema reads it. Throws a {@link Misfit}; `at` is where the value stood in the answer. */
export function fit<T extends z.ZodMiniType>(schema: T, value: unknown, at = ""): z.output<T> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  throw new Misfit(describeIssue(result.error.issues[0], at));
}

/** The value as the schema reads it; undefined if it does not fit. */
export function tryFit<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> | undefined {
  const result = z.safeParse(schema, value);
  return result.success ? result.data : undefined;
}

function describeIssue(issue: z.core.$ZodIssue | undefined, at: string): string {
  if (!issue) return "does not fit";
  const path = issue.path.reduce<string>(
    (left, key) =>
      typeof key === "number" ? `${left}[${key}]` : left ? `${left}.${String(key)}` : String(key),
    at,
  );
  const expected =
    issue.code === "invalid_type"
      ? `is not of type ${issue.expected}`
      : issue.code === "invalid_value"
        ? `is none of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`
        : issue.code === "invalid_union"
          ? "has an unknown value"
          : `does not fit (${issue.code})`;
  return `${path ? `"${path}"` : "the answer"} ${expected}`;
}
