import type { AgentCall } from "../engine/agent-permissions.ts";
import { invalidArgument, type Refusal } from "../engine/errors.ts";
import { derivedID } from "../engine/ids.ts";
import { parseModel } from "../engine/model-ref.ts";
import { isActive, type Isolation, type ModelRef, type Task } from "../engine/task.ts";
import { findTask, shortIDs } from "./own-tasks.ts";
import { oneLine } from "./plain-text.ts";
import { adviceMeanwhile, statusText } from "./task-text.ts";
import type { ToolCaller, ToolContext, ToolResult, ToolRun } from "./tool.ts";
import { missing, ToolInput } from "./tool-input.ts";

const DESCRIPTION_LENGTH = 80;
/** The length in characters above which the ID of a call is stored as a shorter one that is derived from it. */
const MAX_CALL_ID = 100;

export const runTask: ToolRun = async (sent, context) => {
  const input = new ToolInput(sent);
  const resumed = input.id("resume");
  const steered = input.id("send_to");
  const forks = input.flag("fork") ?? false;
  if (forks && resumed !== undefined) throw exclusive();
  if (steered !== undefined && (forks || resumed !== undefined))
    throw invalidArgument(
      'The parameter "send_to" sends a message to a running task; give it without "fork" and "resume".',
    );
  if (isolationOf(input) !== undefined && (resumed !== undefined || steered !== undefined))
    throw invalidArgument(
      'The parameter "isolation" says where a new task works, and a task stays where it is; leave it out with "resume" and "send_to", or launch a new task.',
    );
  const prompt = input.text("prompt");
  if (prompt === undefined) throw missing("prompt", "say in full what the task is to do");
  if (steered !== undefined) return steer(steered, prompt, context);
  return resumed === undefined ? launch(input, prompt, forks, context) : resume(resumed, prompt, context);
};

async function launch(
  input: ToolInput,
  prompt: string,
  forks: boolean,
  context: ToolContext,
): Promise<ToolResult> {
  const { caller, commands } = context;
  const task = await commands.launch({
    prompt,
    description: input.text("description"),
    agent: input.text("agent")?.trim(),
    model: modelOf(input),
    batchID: input.id("batch_id"),
    parentSessionID: caller.sessionID,
    parentMessageID: caller.messageID,
    callingAgent: caller.agent,
    launchedBy: caller.by,
    callID: callKey(caller),
    permitted: caller.permitted,
    fork: forks ? { sourceSessionID: caller.sessionID } : undefined,
    isolation: isolationOf(input),
  });
  return startedText("Launched", task, context);
}

async function resume(reference: string, prompt: string, context: ToolContext): Promise<ToolResult> {
  const { id } = findTask(context, reference);
  const task = await context.commands.resume(id, prompt, agentCall(context.caller));
  return startedText("Resumed", task, context);
}

async function steer(reference: string, prompt: string, context: ToolContext): Promise<ToolResult> {
  const { id } = findTask(context, reference);
  const task = await context.commands.steer(id, prompt, { call: agentCall(context.caller) });
  return startedText("Sent a message to", task, context);
}

/** Undefined if the user makes the call. */
function agentCall(caller: ToolCaller): AgentCall | undefined {
  const { by, sessionID, messageID, agent, permitted } = caller;
  return by === "agent" ? { sessionID, messageID, agent, permitted, callID: callKey(caller) } : undefined;
}

function startedText(
  what: "Launched" | "Resumed" | "Sent a message to",
  task: Task,
  context: ToolContext,
): ToolResult {
  const id = shortIDs(context, [task])(task);
  const title = `${what} task ${id}: ${oneLine(task.description, DESCRIPTION_LENGTH)}`;
  const next = isActive(task)
    ? adviceMeanwhile(task, id, context)
    : // The call was repeated, and the task has ended in the meantime.
      `Read its result with asyncagents_output(task_id="${id}").`;
  const text = [
    title,
    `Status: ${statusText(task)}`,
    `Agent: ${task.agent}`,
    `Batch: ${task.batchID}`,
    "",
    next,
  ];
  return { title, text: text.join("\n") };
}

function isolationOf(input: ToolInput): Isolation | undefined {
  return input.word("isolation", ["folder", "worktree"]);
}

function modelOf(input: ToolInput): ModelRef | undefined {
  const name = input.text("model")?.trim();
  const model = parseModel(name);
  if (name === undefined || model) return model;
  throw invalidArgument('The parameter "model" must be written as provider/model, or left out.');
}

/**
 * Identifies the call. The message ID is included, because some providers' call IDs are not unique. Others put what the
 * model thought into them, which is too long for a task's record.
 */
function callKey({ messageID, callID }: ToolCaller): string | undefined {
  if (messageID === undefined || callID === undefined) return undefined;
  return `${messageID}/${callID.length > MAX_CALL_ID ? derivedID("prt", 0, callID) : callID}`;
}

function exclusive(): Refusal {
  return invalidArgument(
    'The parameters "fork" and "resume" are mutually exclusive: fork starts a new task from this conversation, resume goes on with a task.',
  );
}
