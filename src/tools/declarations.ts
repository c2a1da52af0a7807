import * as z from "zod/mini";
import { TASK_STATUSES } from "../engine/task.ts";
import type { ToolDeclaration } from "./tool.ts";

/* Separate from what the tools do, so that declaring tools does not load their implementation. */

const optionalText = (description: string) => z.optional(z.string()).check(z.describe(description));
const optionalFlag = (description: string) => z.optional(z.boolean()).check(z.describe(description));

const TASK: ToolDeclaration = {
  name: "asyncagents_task",
  title: "Launch Background Task",
  description:
    "Hands work to a background agent and returns its task ID at once. Use it for work that can go on beside yours, " +
    "such as research, a review or edits in other files; several calls in one message run in parallel. The agent sees " +
    "this prompt alone, not your conversation: put in all it needs, and say what to report. The answer says how you " +
    "get the result; until then do other work or end your turn, and never poll. With `resume`, the prompt is a " +
    "follow-up to a completed task, which remembers its conversation; with `send_to`, " +
    "a message to a running one. Do not use it for what you can do yourself in a step or two.",
  input: {
    description: optionalText(
      "What the task is about, in 3 to 8 words, for the user; by default the prompt's first line.",
    ),
    prompt: z
      .string()
      .check(z.describe("All that the agent is to know and do, and what to report at the end.")),
    agent: optionalText(
      "The agent that does it; by default one made for general tasks. An unknown one is answered with the list of those there are.",
    ),
    fork: optionalFlag(
      "true: the agent starts with a copy of this conversation or, outside OpenCode, of the user's active OpenCode session. Not together with resume.",
    ),
    resume: optionalText(
      "The ID of a completed task to which the prompt is a follow-up; it keeps its agent, model and batch. Not together with fork.",
    ),
    send_to: optionalText(
      "The ID of a running task to which the prompt is a message, which it reads at its next step; you still get one result. Not together with fork or resume.",
    ),
    batch_id: optionalText(
      "A name for tasks that belong together, to list, cancel and clear them as one; by default those that an OpenCode agent launches share one while they run.",
    ),
    isolation: z
      .optional(z.enum(["folder", "worktree"]))
      .check(
        z.describe(
          "worktree: the agent works in a Git worktree of its own, which starts with the folder as it is now or, if the user set that, as last committed, and the folder stays unchanged; when it ends, you get the files it changed and a Git ref with the result. folder: it works where you do. By default as the user set it, but where you do if that is a worktree. Not together with resume or send_to.",
        ),
      ),
    model: optionalText(
      "The model, as provider/model; leave it out unless you were asked for a certain one.",
    ),
  },
};

const OUTPUT: ToolDeclaration = {
  name: "asyncagents_output",
  title: "Read Background Task",
  description:
    "Reads a background task: its status and, once it has ended, its full result (or the error); while it is running, " +
    "its progress: what it is doing, tool calls, last update. Returns at once; with `block` it first waits until " +
    "the task has ended or `timeout` has run out, and answers in the same form. Use it to read a result again, or " +
    "with `block` when you cannot go on without the result. Do not call it again and again to see whether a task has ended.",
  input: {
    task_id: z.string().check(z.describe("The task's ID, as its launch or asyncagents_list gave it.")),
    block: optionalFlag(
      "true: wait until the task has completed, failed or been cancelled. By default false.",
    ),
    timeout: z
      .optional(z.number().check(z.minimum(0)))
      .check(
        z.describe("With block: the seconds after which to come back anyway; by default 30, at most 600."),
      ),
  },
};

const CANCEL: ToolDeclaration = {
  name: "asyncagents_cancel",
  title: "Cancel Background Tasks",
  description:
    "Stops background tasks of this conversation (outside OpenCode: of the active OpenCode session) that are still " +
    "running: one (`task_id`) or all of a batch (`batch_id`). " +
    "Their models and tools stop at once; what they have changed stays. The answer names what was cancelled. Use it " +
    "when their work is no longer wanted or goes wrong. A cancelled task cannot be resumed: launch a new one instead.",
  input: {
    task_id: optionalText("The ID of the task to cancel. Not together with batch_id."),
    batch_id: optionalText(
      "The ID of the batch of which to cancel all tasks that are still running. Not together with task_id.",
    ),
  },
};

const LIST: ToolDeclaration = {
  name: "asyncagents_list",
  title: "List Background Tasks",
  description:
    "Lists the background tasks of this conversation (outside OpenCode: of the active OpenCode session), oldest first: " +
    "how many there are of each status, then a table " +
    "with ID, status, agent, batch, time taken and description. `(resumed)` after an ID marks a task that got a " +
    "follow-up, `(forked)` one that began with a copy of a conversation. Use it to find an ID or to see what is still " +
    "running; it holds no results: asyncagents_output does. Do not call it again and again to wait for an end.",
  input: {
    status: z
      .optional(z.enum(TASK_STATUSES))
      .check(
        z.describe("Only tasks of this status; `resumed` are those that are working on a follow-up now."),
      ),
    batch_id: optionalText("Only tasks of the batch with this ID."),
  },
};

const CLEAR: ToolDeclaration = {
  name: "asyncagents_clear",
  title: "Clear Background Tasks",
  description:
    "Takes background tasks off the list of this conversation (outside OpenCode: of the active OpenCode session): " +
    "one (`task_id`), all of a batch (`batch_id`), or all there " +
    "are (neither). Tasks that are still running are cancelled first. The answer names what was cleared. Use it when " +
    "you need neither the tasks nor their results any more: a cleared task can no longer be read, resumed or listed, " +
    "unless it goes on because a task that it launched itself has ended.",
  input: {
    task_id: optionalText("The ID of the task to clear. Not together with batch_id."),
    batch_id: optionalText("The ID of the batch to clear. Not together with task_id."),
  },
};

/** The tool declarations for models. The first tool is the one that the others refer to. */
export const DECLARATIONS: readonly ToolDeclaration[] = [TASK, OUTPUT, CANCEL, LIST, CLEAR];
