import * as z from "zod/mini";
import type { AgentCall } from "../engine/agent-permissions.ts";
import {
  CHANGE_KINDS,
  CONFLICTS,
  FILE_MODES,
  TAKES,
  type BringBackPlan,
  type FileChoice,
  type KeptFile,
  type PlannedFile,
  type Version,
  type Versions,
} from "../engine/bring-back.ts";
import type { Budget } from "../engine/limit.ts";
import type { ClearOptions } from "../engine/clearing.ts";
import type { Caller, EngineSettings } from "../engine/engine.ts";
import { invalidArgument, Refusal } from "../engine/errors.ts";
import type { ForkRequest } from "../engine/fork/builder.ts";
import type { LaunchInput } from "../engine/launcher.ts";
import type { RequestRef } from "../engine/requests.ts";
import { sentence } from "../engine/sentence.ts";
import type { FileChange, FileContent, PromptFile, RequestAnswer } from "../engine/server-model.ts";
import { NO_ISOLATION, type IsolationSettings, type SetupSettings } from "../engine/settings.ts";
import type { SteerOptions } from "../engine/steering.ts";
import type { Isolation, ModelRef, TaskRecord } from "../engine/task.ts";
import type { OutputOptions } from "../engine/waiting.ts";
import type { ConversationLink, ConversationQuestion } from "../protocol/output.ts";
import type {
  ConfigPlan,
  Environment,
  FolderCalls,
  FolderMethod,
  FolderSettings,
  KeptTasks,
  OpenFolder,
} from "./contract.ts";
import type { FoundFile } from "./revert-plan.ts";

/*
 * All validation of what windows send. Objects are strict: a field that is missing here does not compile, and a field
 * that only another version knows is rejected rather than lost.
 */

/** Every argument has a position, including optional ones. */
type AllOf<P extends readonly unknown[]> = OrNothing<Required<P>>;
type OrNothing<P extends readonly unknown[]> = { [I in keyof P]: P[I] | undefined };

type Fields<T> = { [K in keyof T]-?: z.ZodMiniType<T[K]> };

const id = z.string();
const text = z.optional(z.string());
const texts = z.array(z.string());
const caller = z.enum(["agent", "person"]) satisfies z.ZodMiniType<Caller>;
const model = z.strictObject({
  providerID: z.string(),
  modelID: z.string(),
  variant: text,
} satisfies Fields<ModelRef>);
const forkRequest = z.strictObject({
  sourceSessionID: z.string(),
  fromMessageID: text,
  upToMessageID: text,
  maxToolResultChars: z.optional(z.number()),
  maxTokens: z.optional(z.number()),
  carriesOn: z.optional(z.boolean()),
} satisfies Fields<ForkRequest>);
const promptFile = z.strictObject({
  url: z.string(),
  mime: z.string(),
  filename: text,
} satisfies Fields<PromptFile>);
const isolation = z.enum(["folder", "worktree"]) satisfies z.ZodMiniType<Isolation>;
const launchInput = z.strictObject({
  prompt: z.string(),
  files: z.optional(z.array(promptFile)),
  description: text,
  agent: text,
  model: z.optional(model),
  parentSessionID: z.string(),
  parentMessageID: text,
  callingAgent: text,
  launchedBy: caller,
  batchID: text,
  callID: text,
  permitted: z.optional(texts),
  fork: z.optional(forkRequest),
  insteadOf: text,
  isolation: z.optional(isolation),
} satisfies Fields<LaunchInput>);
const agentCall = z.strictObject({
  sessionID: z.string(),
  messageID: text,
  agent: text,
  callID: text,
  permitted: z.optional(texts),
} satisfies Fields<AgentCall>);
const steerOptions = z.strictObject({
  after: z.optional(z.boolean()),
  call: z.optional(agentCall),
} satisfies Fields<SteerOptions>);
const clearOptions = z.strictObject({
  cancelRunning: z.optional(z.boolean()),
  deleteSession: z.optional(z.boolean()),
} satisfies Fields<ClearOptions>);
/** JSON represents infinity as null. */
const timeout = z.pipe(
  z.nullish(z.number()),
  z.transform((value) => (value === null ? Infinity : value)),
);
const outputOptions = z.strictObject({
  block: z.optional(z.boolean()),
  timeout,
} satisfies Fields<Omit<OutputOptions, "signal">>);

/** A window may send all that it knows of the request. */
const requestRef = z.object({ id, sessionID: id } satisfies Fields<RequestRef>);
const requestAnswer = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("permission"),
    reply: z.enum(["once", "always", "reject"]),
    message: text,
  }),
  z.strictObject({ type: z.literal("question"), answers: z.array(texts) }),
  z.strictObject({ type: z.literal("dismiss") }),
]) satisfies z.ZodMiniType<RequestAnswer>;

const configPlan = z.strictObject({
  path: z.string(),
  before: text,
  after: z.string(),
  entry: z.string(),
} satisfies Fields<ConfigPlan>);

const gitObject = z.string().check(z.regex(/^[0-9a-f]{40,64}$/));
const version = z.strictObject({ mode: z.string(), blob: gitObject } satisfies Fields<Version>);
const plannedFile = z.strictObject({
  path: z.string(),
  from: text,
  kind: z.enum(CHANGE_KINDS),
  added: z.number(),
  removed: z.number(),
  isBinary: z.boolean(),
  conflict: z.optional(z.enum(CONFLICTS)),
  hasMarkers: z.optional(z.boolean()),
  versions: z.optional(
    z.strictObject({
      mine: z.optional(version),
      agents: z.optional(version),
    } satisfies Fields<Versions>),
  ),
} satisfies Fields<PlannedFile>);
const bringBackPlan = z.strictObject({
  root: z.string(),
  mine: gitObject,
  agents: gitObject,
  merged: gitObject,
  files: z.array(plannedFile),
  commits: z.strictObject({ mine: gitObject, agents: gitObject }),
} satisfies Fields<BringBackPlan>);
const fileChoice = z.strictObject({
  path: z.string(),
  take: z.enum(TAKES),
} satisfies Fields<FileChoice>);
const keptFile = z.strictObject({
  path: z.string(),
  mode: z.enum(FILE_MODES),
  blob: z.optional(gitObject),
} satisfies Fields<KeptFile>);

const fileContent = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.enum(["text", "excerpt"]), text: z.string() }),
  z.strictObject({ kind: z.enum(["absent", "binary", "unknown"]) }),
]) satisfies z.ZodMiniType<FileContent>;
const fileChange = z.strictObject({
  path: z.string(),
  before: fileContent,
  after: fileContent,
  isDoubtful: z.boolean(),
  isMixed: z.boolean(),
  mixedWith: texts,
  workedOnBy: texts,
} satisfies Fields<FileChange>);
const foundFile = z.strictObject({
  name: z.string(),
  present: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("file"), text, isUnsaved: z.boolean() }),
    z.strictObject({ kind: z.enum(["absent", "outside", "unreadable"]) }),
  ]),
} satisfies Fields<FoundFile>);

/** An omitted argument is null in a JSON array. */
const maybe = <T extends z.ZodMiniType>(schema: T) =>
  z.pipe(
    z.nullish(schema),
    z.transform((value) => value ?? undefined),
  );

const nothing = z.tuple([]);

/** The calls without signals, which are not sent. */
type Travelling = Omit<FolderCalls, "output" | "previewFork" | "connect" | "callTool" | "remakeWorktree"> & {
  remakeWorktree(taskID: string): unknown;
  output(taskID: string, options?: Omit<OutputOptions, "signal">): unknown;
  previewFork(request: ForkRequest): unknown;
  connect(): unknown;
  callTool(name: string, input: unknown, sessionID: string): unknown;
};

const parameters = {
  launch: z.tuple([launchInput]),
  resume: z.tuple([id, z.string(), maybe(agentCall)]),
  steer: z.tuple([id, z.string(), maybe(steerOptions)]),
  withdraw: z.tuple([id]),
  retry: z.tuple([id]),
  continue: z.tuple([id, maybe(z.string())]),
  cancel: z.tuple([id, maybe(caller)]),
  cancelBatch: z.tuple([id, maybe(id), maybe(caller)]),
  stopSubagent: z.tuple([id]),
  adopt: z.tuple([id]),
  clear: z.tuple([id, maybe(clearOptions), maybe(caller)]),
  clearBatch: z.tuple([id, maybe(id), maybe(clearOptions), maybe(caller)]),
  restore: z.tuple([id]),
  worktreeChanges: z.tuple([id]),
  removeWorktree: z.tuple([id]),
  remakeWorktree: z.tuple([id]),
  planBringBack: z.tuple([id, z.record(z.string(), z.string())]),
  bringBack: z.tuple([id, bringBackPlan, z.array(fileChoice), texts]),
  undoBringBack: z.tuple([id, z.strictObject({ before: z.array(keptFile), after: z.array(keptFile) })]),
  letAgentMerge: z.tuple([id, bringBackPlan]),
  createBranch: z.tuple([id, z.string()]),
  discardWorktree: z.tuple([id]),
  undoDiscard: z.tuple([id, z.string().check(z.startsWith("refs/asyncagents/discarded/"))]),
  listWorktrees: nothing,
  cleanUpWorktree: z.tuple([z.string()]),
  rename: z.tuple([id, z.string()]),
  setupOutput: z.tuple([id]),
  predictConflicts: nothing,
  output: z.tuple([id, maybe(outputOptions)]),
  answer: z.tuple([requestRef, requestAnswer]),
  agents: nothing,
  takenSince: z.tuple([z.number()]),
  lastAnswer: z.tuple([id]),
  explainRequest: z.tuple([requestRef]),
  previewFork: z.tuple([forkRequest]),
  forkStarts: z.tuple([id]),
  search: z.tuple([id, z.string()]),
  image: z.tuple([id, z.string()]),
  models: nothing,
  changes: z.tuple([id, z.number()]),
  fileSaved: z.tuple([z.string(), z.number()]),
  planRevert: z.tuple([id, fileChange, foundFile]),
  ensureSession: nothing,
  join: nothing,
  connect: nothing,
  cancelConnecting: nothing,
  refresh: nothing,
  disconnect: nothing,
  stopServer: nothing,
  attachCommand: z.tuple([id]),
  previewCall: z.tuple([z.string(), z.unknown(), maybe(id)]),
  callTool: z.tuple([z.string(), z.unknown(), id]),
  planAgentTools: z.tuple([z.enum(["install", "remove"]), z.enum(["project", "user"])]),
  applyAgentTools: z.tuple([configPlan]),
} satisfies { [K in FolderMethod]: z.ZodMiniType<AllOf<Parameters<Travelling[K]>>> };

/** Unchecked: the engine refuses invalid limits where they are used, with an error that names the setting. */
const limit = z.unknown() as z.ZodMiniType<number>;

const engineSettings = z.strictObject({
  pollInterval: z.number(),
  stallWarning: z.number(),
  fork: z.strictObject({
    maxToolResultChars: limit,
    maxTokens: limit,
    strategy: z.enum(["auto", "fork", "replay"]),
  }),
  defaultAgent: text,
  defaultModel: z.optional(model),
  maxConcurrentTasks: z.number(),
  maxDepth: z.number(),
  notifyParent: z.boolean(),
  // Missing in settings stored by earlier versions.
  collisions: z._default(z.enum(["block", "warn", "off"]), "block"),
  isolation: z._default(
    z.strictObject({
      default: isolation,
      location: text,
      startFrom: z.enum(["whatYouSee", "head"]),
      include: z.optional(z.readonly(texts)),
      setup: z.optional(
        z.strictObject({
          command: z.string(),
          isAllowed: z.boolean(),
          timeout: z.number(),
        } satisfies Fields<SetupSettings>),
      ),
    } satisfies Fields<IsolationSettings>),
    NO_ISOLATION,
  ),
  budget: z.record(z.string(), limit) as z.ZodMiniType<Budget>,
} satisfies Fields<EngineSettings>);

export const folderSettings = z.strictObject({
  engine: engineSettings,
  server: z.strictObject({
    url: text,
    path: text,
    startTimeoutMs: z.number(),
    ownDatabase: z.optional(z.boolean()),
  }),
  password: text,
  agentTools: z.boolean(),
  keepWorkingMs: z.number(),
  watched: z.boolean(),
} satisfies Fields<FolderSettings>);

/** Written by this version or an earlier one. Invalid data is dropped. */
export const keptTasks = z.object({
  tombstones: z.array(z.object({ id, description: z.string(), parentSessionID: id })),
  // Only written by the extension, and read by the version that wrote it or a later one.
  unsettled: z.array(z.custom<TaskRecord>((value) => typeof (value as TaskRecord | null)?.id === "string")),
} satisfies Fields<KeptTasks>);

export const environment = z.record(z.string(), z.string()) satisfies z.ZodMiniType<Environment>;

export const openFolder = z.strictObject({
  directory: z.string(),
  settings: folderSettings,
  env: environment,
  kept: z.catch(z.optional(keptTasks), undefined),
} satisfies Fields<OpenFolder>);

export const conversationQuestion = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("newest") }),
  z.strictObject({ type: z.literal("earlier"), before: id }),
  z.strictObject({ type: z.literal("tool-detail"), id }),
  z.strictObject({ type: z.literal("find-in-tools"), query: z.string() }),
]) satisfies z.ZodMiniType<ConversationQuestion>;

export const conversationLink = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("open-field"), id, field: z.string() }),
  z.strictObject({ type: z.literal("open-diff"), id }),
  z.strictObject({ type: z.literal("open-session"), id }),
  z.strictObject({ type: z.literal("open-transcript") }),
]) satisfies z.ZodMiniType<ConversationLink>;

/** Validates the arguments of a call. Omitted ones become undefined. Throws a {@link Refusal} if they are invalid. */
export function parseCall(
  method: string,
  args: unknown,
): { readonly method: FolderMethod; readonly args: readonly unknown[] } {
  if (!isMethod(method))
    throw new Refusal(
      "unavailable",
      sentence("The background process doesn't know the command {0}. Reload this window.", method),
    );
  const schema: z.ZodMiniType<readonly unknown[]> = parameters[method];
  const parsed = parse(method, schema, args);
  const places = (parameters[method] as z.ZodMiniTuple).def.items.length;
  return { method, args: Array.from({ length: places }, (_, at) => parsed[at]) };
}

/** The parsed parameters. Throws a {@link Refusal} if they are invalid. */
export function parse<T>(method: string, schema: z.ZodMiniType<T>, params: unknown): T {
  const parsed = z.safeParse(schema, params);
  if (parsed.success) return parsed.data;
  throw invalidArgument(sentence("Invalid arguments for {0}: {1}", method, z.prettifyError(parsed.error)));
}

function isMethod(method: string): method is FolderMethod {
  return Object.hasOwn(parameters, method);
}
