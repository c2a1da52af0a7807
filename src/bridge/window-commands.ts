import * as z from "zod/mini";
import type { AgentCall } from "../engine/agent-permissions.ts";
import type { Caller, ClearOptions, TaskEngine } from "../engine/engine.ts";
import type { ForkRequest } from "../engine/fork/builder.ts";
import type { LaunchInput } from "../engine/launcher.ts";
import { Refusal } from "../engine/errors.ts";
import { ServerFailure, type Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { PromptFile } from "../engine/server-model.ts";
import type { ModelRef, Task } from "../engine/task.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import { blockingTime } from "../engine/waiting.ts";
import type { WriterElection } from "./writer-election.ts";

/** How long a window may lag behind a command of its own before it goes on all the same, in milliseconds. */
const CATCH_UP_MS = 1_000;

/** The commands that write records; an answer to a request writes none. */
type Forwarded = Exclude<keyof TaskCommands, "answer">;

/** Every argument has its place, those too that may be left out. */
type AllOf<P extends readonly unknown[]> = OrNothing<Required<P>>;
type OrNothing<P extends readonly unknown[]> = { [I in keyof P]: P[I] | undefined };

/** Fields that are missing here do not compile; those of a newer version are refused, not lost. */
type Fields<T> = { [K in keyof T]-?: z.ZodMiniType<T[K]> };

const taskID = z.string();
const caller = z.enum(["agent", "person"]) satisfies z.ZodMiniType<Caller>;
const model = z.strictObject({
  providerID: z.string(),
  modelID: z.string(),
  variant: z.optional(z.string()),
} satisfies Fields<ModelRef>);
const forkRequest = z.strictObject({
  sourceSessionID: z.string(),
  fromMessageID: z.optional(z.string()),
  upToMessageID: z.optional(z.string()),
  maxToolResultChars: z.optional(z.number()),
  maxTokens: z.optional(z.number()),
} satisfies Fields<ForkRequest>);
const promptFile = z.strictObject({
  url: z.string(),
  mime: z.string(),
  filename: z.optional(z.string()),
} satisfies Fields<PromptFile>);
const launchInput = z.strictObject({
  prompt: z.string(),
  files: z.optional(z.array(promptFile)),
  description: z.optional(z.string()),
  agent: z.optional(z.string()),
  model: z.optional(model),
  parentSessionID: z.string(),
  parentMessageID: z.optional(z.string()),
  launchedBy: caller,
  batchID: z.optional(z.string()),
  callID: z.optional(z.string()),
  permitted: z.optional(z.array(z.string())),
  fork: z.optional(forkRequest),
} satisfies Fields<LaunchInput>);
const agentCall = z.strictObject({
  sessionID: z.string(),
  messageID: z.optional(z.string()),
  callID: z.optional(z.string()),
  permitted: z.optional(z.array(z.string())),
} satisfies Fields<AgentCall>);
const clearOptions = z.strictObject({
  cancelRunning: z.optional(z.boolean()),
  deleteSession: z.optional(z.boolean()),
} satisfies Fields<ClearOptions>);

/** An argument that was left out is null in a JSON array. */
const maybe = <T extends z.ZodMiniType>(schema: T) =>
  z.pipe(
    z.nullish(schema),
    z.transform((value) => value ?? undefined),
  );

const parameters = {
  launch: z.tuple([launchInput]),
  resume: z.tuple([taskID, z.string(), maybe(agentCall)]),
  retry: z.tuple([taskID]),
  cancel: z.tuple([taskID, maybe(caller)]),
  cancelBatch: z.tuple([z.string(), maybe(z.string()), maybe(caller)]),
  stopSubagent: z.tuple([z.string()]),
  adopt: z.tuple([z.string()]),
  clear: z.tuple([taskID, maybe(clearOptions), maybe(caller)]),
  clearBatch: z.tuple([z.string(), maybe(z.string()), maybe(clearOptions), maybe(caller)]),
  restore: z.tuple([taskID]),
  output: z.tuple([taskID]),
  sendNotice: z.tuple([taskID]),
} satisfies { [K in Exclude<Forwarded, "output">]: z.ZodMiniType<AllOf<Parameters<TaskEngine[K]>>> } & {
  // Waiting stays in the window that asks: see below.
  output: z.ZodMiniType<[taskID: string]>;
};

/** What the window that writes does with the commands of all: the `handle` of its election. */
export function createCommandHandler(
  engine: Pick<TaskEngine, Forwarded>,
): (method: string, args: unknown) => Promise<unknown> {
  return async (method, args) => {
    if (!isForwarded(method))
      throw new Refusal(
        "unavailable",
        sentence(
          "The window that writes does not know the command {0}; reload the windows of this folder.",
          method,
        ),
      );
    const parsed = z.safeParse<z.ZodMiniType<readonly unknown[]>>(parameters[method], args);
    if (!parsed.success)
      throw new Refusal(
        "invalid-argument",
        sentence("The arguments of {0} do not fit: {1}", method, z.prettifyError(parsed.error)),
      );
    return (engine[method] as (...given: readonly unknown[]) => Promise<unknown>).apply(engine, [
      ...parsed.data,
    ]);
  };
}

/** The commands of a window. Those that write records are carried out by the window that writes. */
export function createWindowCommands(
  engine: Pick<TaskEngine, "answer" | "get" | "onDidChange" | "wait">,
  election: Pick<WriterElection, "call">,
  clock: Clock,
): TaskCommands {
  /** What comes back was made by the same engine in another process of this user, so it is taken as it is. */
  const forward =
    <K extends Forwarded>(method: K) =>
    async (...args: Parameters<TaskEngine[K]>): Promise<Awaited<ReturnType<TaskEngine[K]>>> => {
      const call = () => election.call(method, args) as ReturnType<TaskEngine[K]>;
      try {
        return await call();
      } catch (error) {
        const isLost = error instanceof ServerFailure && error.reason === "unreachable";
        if (!isLost || !isRepeatable(method, args)) throw error;
        // The window that wrote closed before it answered; the one that takes over does nothing twice.
        return await call();
      }
    };

  /** As `forward`, and whoever looks next finds the task in this window as the command left it. */
  const follow =
    <K extends "launch" | "resume" | "retry" | "cancel" | "adopt">(method: K) =>
    async (...args: Parameters<TaskEngine[K]>): Promise<Task> => {
      const task = await forward(method)(...args);
      await caughtUp(engine, task, clock);
      return task;
    };

  return {
    launch: follow("launch"),
    resume: follow("resume"),
    retry: follow("retry"),
    cancel: follow("cancel"),
    cancelBatch: forward("cancelBatch"),
    stopSubagent: forward("stopSubagent"),
    adopt: follow("adopt"),
    clear: forward("clear"),
    clearBatch: forward("clearBatch"),
    restore: forward("restore"),
    // Waits here, where the caller can end it and no other window's end does; the one that writes then notes the fetch.
    output: async (taskID, { block = false, timeout, signal } = {}) => {
      if (block) await engine.wait([taskID], { timeout: blockingTime(timeout), signal });
      return forward("output")(taskID);
    },
    sendNotice: forward("sendNotice"),
    // Writes no record: the server takes an answer from any window.
    answer: (request, answer) => engine.answer(request, answer),
  };
}

/** Whether a call can be made again without harm: one that changes nothing more, and one that the engine knows by its ID. */
function isRepeatable(method: Forwarded, args: readonly unknown[]): boolean {
  switch (method) {
    case "output":
    case "stopSubagent":
    case "adopt":
      return true;
    case "launch":
      return (args[0] as LaunchInput).callID !== undefined;
    case "resume":
      return (args[2] as AgentCall | undefined)?.callID !== undefined;
    default:
      return false;
  }
}

function isForwarded(method: string): method is Forwarded {
  return Object.hasOwn(parameters, method);
}

/** Events tell every window of what one of them wrote, a little later. */
function caughtUp(
  engine: Pick<TaskEngine, "get" | "onDidChange">,
  { id, revision }: Task,
  clock: Clock,
): Promise<void> {
  const isThere = (): boolean => (engine.get(id)?.revision ?? 0) >= revision;
  if (isThere()) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      subscription.dispose();
      timer.dispose();
      resolve();
    };
    const subscription = engine.onDidChange((change) => void (change.id === id && isThere() && done()));
    const timer = clock.after(CATCH_UP_MS, done);
  });
}
