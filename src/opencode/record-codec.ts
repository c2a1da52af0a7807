import * as z from "zod/mini";
import { isSentence, sentence, type Sentence } from "../engine/sentence.ts";
import { TASK_STATUSES } from "../engine/task.ts";
import type { RecordReading, TaskError, TaskRecord, TaskRecordDraft } from "../engine/task.ts";
import { parse, ValidationError } from "./validation.ts";

/** The key of the task record in a session's metadata. */
export const RECORD_KEY = "asyncagents";
const RECORD_VERSION = 1;
/** In bytes of JSON. Every change of a session broadcasts all of its metadata, so records must be small. */
const MAX_RECORD_BYTES = 4096;
const MAX_DESCRIPTION_CHARS = 200;

const time = z.number();

const notice = z.discriminatedUnion("state", [
  z.object({ state: z.literal("none") }),
  z.object({
    state: z.literal("pending"),
    messageID: z.string(),
    attempts: z.number(),
    lastError: z.optional(z.string()),
  }),
  z.object({ state: z.literal("delivered"), messageID: z.string(), at: time }),
  z.object({ state: z.literal("skipped"), reason: z.string() }),
]);

/** All fields must be listed: a missing one would be lost with each restart, so it is a compile error. */
type Fields<T> = { [K in keyof T]-?: z.ZodMiniType<T[K]> };

const storedRecord = z.object({
  /** Missing in a new session: the server chooses its ID, so the record cannot contain it yet. */
  id: z.optional(z.string()),
  revision: z.number(),
  description: z.string(),
  agent: z.string(),
  model: z.optional(
    z.object({ providerID: z.string(), modelID: z.string(), variant: z.optional(z.string()) }),
  ),
  parentSessionID: z.string(),
  parentMessageID: z.optional(z.string()),
  launchedBy: z.enum(["agent", "person"]),
  adoptedAt: z.optional(time),
  batchID: z.string(),
  isForked: z.boolean(),
  forkedFrom: z.optional(z.string()),
  forkOptions: z.optional(
    z.object({
      fromMessageID: z.optional(z.string()),
      upToMessageID: z.optional(z.string()),
      maxToolResultChars: z.optional(z.number()),
      maxTokens: z.optional(z.number()),
      carriesOn: z.optional(z.boolean()),
    }),
  ),
  insteadOf: z.optional(z.string()),
  baseline: z.optional(
    z.object({
      cost: z.number(),
      input: z.number(),
      output: z.number(),
      reasoning: z.number(),
      cacheRead: z.number(),
      cacheWrite: z.number(),
    }),
  ),
  worktree: z.optional(
    z.object({
      name: z.string(),
      directory: z.string(),
      base: z.string(),
      setup: z.optional(z.enum(["pending", "again"])),
      outcome: z.optional(z.enum(["broughtBack", "branched", "discarded"])),
    }),
  ),
  resumeCount: z.number(),
  status: z.enum(TASK_STATUSES),
  queued: z.optional(z.boolean()),
  toolCalls: z.number(),
  callID: z.optional(z.string()),
  promptMessageID: z.string(),
  followUp: z.optional(z.object({ text: z.string(), messageID: z.optional(z.string()) })),
  createdAt: time,
  startedAt: time,
  endedAt: z.optional(time),
  worked: z.optional(z.number()),
  waited: z.optional(z.number()),
  spans: z.optional(z.array(z.tuple([z.enum(["turn", "wait"]), time, time]))),
  finalMessageID: z.optional(z.string()),
  error: z.optional(
    z.object({
      name: z.string(),
      message: z.string(),
      sentence: z.optional(z.custom<Sentence>(isSentence)),
    }),
  ),
  notice,
  retrievedAt: z.optional(time),
  clearedAt: z.optional(time),
} satisfies Fields<TaskRecordDraft & { readonly id?: string | undefined }>);

/** The properties of a session that determine whether a record in its metadata is its own. */
export interface RecordHolder {
  readonly id: string;
  readonly parentID?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Reads the task record in a session's metadata. Never throws. */
export function readRecord(session: RecordHolder): RecordReading {
  const stored = session.metadata?.[RECORD_KEY];
  if (stored === undefined) return { kind: "none" };
  if (typeof stored !== "object" || stored === null || Array.isArray(stored))
    return { kind: "unreadable", reason: sentence("The task record is not an object.") };
  const { v, id } = stored as { v?: unknown; id?: unknown };
  // A fork of a session copies its metadata, so this record belongs to another session.
  if (typeof id === "string" && id !== session.id) return { kind: "none" };
  if (v !== RECORD_VERSION) return { kind: "unreadable", reason: describeVersion(v) };
  try {
    const record = parse(storedRecord, stored);
    if (record.id === undefined && record.parentSessionID !== session.parentID) return { kind: "none" };
    return { kind: "task", record: { ...record, id: session.id } };
  } catch (error) {
    if (error instanceof ValidationError)
      return { kind: "unreadable", reason: sentence("The task record is broken: {0}.", error.message) };
    throw error;
  }
}

function describeVersion(v: unknown): Sentence {
  if (typeof v === "number" && v > RECORD_VERSION)
    return sentence("The task record was written by a newer version of Async Agents (format {0}).", v);
  return sentence("The task record has no format that this version of Async Agents knows.");
}

/**
 * The stored form of a record. If it would exceed 4 kB of JSON, past times are left out, and then free text is cut.
 * Throws a `RangeError` if that is not enough.
 */
export function encodeRecord(record: TaskRecord | TaskRecordDraft): Record<string, unknown> {
  const description = cut(record.description, MAX_DESCRIPTION_CHARS);
  let { spans } = record;
  let freeText = MAX_RECORD_BYTES;
  for (;;) {
    const stored = { v: RECORD_VERSION, ...record, ...cutFreeText(record, freeText), description, spans };
    if (Buffer.byteLength(JSON.stringify(stored)) < MAX_RECORD_BYTES) return stored;
    if (freeText === 0) throw new RangeError("The task record exceeds 4 kB.");
    if (spans) spans = undefined;
    else freeText = Math.floor(freeText / 2);
  }
}

function cutFreeText(record: TaskRecordDraft, chars: number): Pick<TaskRecordDraft, "error" | "notice"> {
  const { error, notice } = record;
  return {
    ...(error ? { error: cutError(error, chars) } : {}),
    notice:
      notice.state === "pending" && notice.lastError !== undefined
        ? { ...notice, lastError: cut(notice.lastError, chars) }
        : notice.state === "skipped"
          ? { ...notice, reason: cut(notice.reason, chars) }
          : notice,
  };
}

/** A message that was cut loses its translatable sentence. */
function cutError({ name, message, sentence }: TaskError, chars: number): TaskError {
  const isWhole = chars === MAX_RECORD_BYTES && message.length <= chars;
  return { name, message: cut(message, chars), ...(isWhole ? { sentence } : {}) };
}

/** At most `chars` UTF-16 units. Cut text ends with an ellipsis, never with half of a surrogate pair. */
function cut(text: string, chars: number): string {
  if (text.length <= chars) return text;
  if (chars === 0) return "";
  return `${text.slice(0, chars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
