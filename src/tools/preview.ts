import type { CallPreview, CallQuestion } from "../engine/call-preview.ts";
import { head } from "../engine/fork/excerpt.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { isCleared } from "../engine/subagent.ts";
import { isActive, type Task } from "../engine/task.ts";
import { cancelTargets } from "./cancel.ts";
import { clearTargets } from "./clear.ts";
import { oneLine } from "./plain-text.ts";
import { requireName } from "./runs.ts";
import type { KnownTasks, TargetContext, ToolName } from "./tool.ts";
import { ToolInput } from "./tool-input.ts";

type ChangingTool = Exclude<ToolName, "asyncagents_output" | "asyncagents_list">;

/** Characters of a prompt that are shown, and of other texts. */
const PROMPT_EXCERPT = 1_000;
const LINE = 120;
/** The number of tasks that are named. */
const MOST_NAMED = 10;

const PROGRESS: Readonly<Record<ToolName, Text>> = {
  asyncagents_task: sentence("Launching background task…"),
  asyncagents_output: sentence("Reading background task…"),
  asyncagents_cancel: sentence("Cancelling background tasks…"),
  asyncagents_clear: sentence("Clearing background tasks…"),
  asyncagents_list: sentence("Listing background tasks…"),
};

/**
 * What a call would do now. Input that can't be used gets a question without details, because the call itself reports
 * what is wrong with it.
 * @param sessionID the caller's session; undefined if it has none yet
 */
export function previewOf(
  tool: string,
  sent: unknown,
  known: KnownTasks,
  sessionID: string | undefined,
): CallPreview {
  const name = requireName(tool);
  const progress = PROGRESS[name];
  if (name === "asyncagents_output" || name === "asyncagents_list") return { progress };
  try {
    return { progress, question: questionOf(name, new ToolInput(sent), known, sessionID) };
  } catch {
    return { progress, question: { title: progress, facts: [], notes: [], tasks: [] } };
  }
}

function questionOf(
  name: ChangingTool,
  input: ToolInput,
  known: KnownTasks,
  sessionID: string | undefined,
): CallQuestion {
  const context = { known, caller: { sessionID: sessionID ?? "", by: "person" } } as const;
  switch (name) {
    case "asyncagents_task":
      return launchQuestion(input, context);
    case "asyncagents_cancel": {
      const tasks = targets(() => cancelTargets(input, context)).filter(isActive);
      return tasksQuestion(cancelTitle(tasks.length), tasks, runningBelow(tasks, known), targetFacts(input));
    }
    case "asyncagents_clear": {
      const tasks = targets(() => clearTargets(input, context)).filter((task) => !isCleared(task));
      const named = targetFacts(input);
      const all = sentence("All background tasks of the active session, running ones included.");
      const unknown = named.length > 0 ? named : [all];
      return tasksQuestion(clearTitle(tasks.length), tasks, runningBelow(tasks, known), unknown, true);
    }
  }
}

/** What still runs below the tasks, which is cancelled with them. */
function runningBelow(tasks: readonly Task[], known: KnownTasks): readonly Task[] {
  const named = new Set(tasks.map(({ id }) => id));
  const below = new Set(tasks.flatMap(({ id }) => known.descendantsOf(id).map((session) => session.id)));
  return [...below]
    .filter((id) => !named.has(id))
    .flatMap((id) => known.get(id) ?? [])
    .filter(isActive);
}

/** Empty if there are none or they can't be told: the call reports why. */
function targets(find: () => readonly Task[]): readonly Task[] {
  try {
    return find();
  } catch {
    return [];
  }
}

function launchQuestion(input: ToolInput, context: TargetContext): CallQuestion {
  const [resumed, steered] = [input.id("resume"), input.id("send_to")];
  const reference = resumed ?? steered;
  const [description, agent, model] = [input.text("description"), input.text("agent"), input.text("model")];
  const isolation = input.text("isolation");
  const facts = [
    reference !== undefined && sentence("Task: {0}", nameOf(reference, context)),
    description !== undefined && sentence("Name: {0}", line(description)),
    agent !== undefined && sentence("Agent: {0}", line(agent)),
    model !== undefined && sentence("Model: {0}", line(model)),
    input.flag("fork") && sentence("The task inherits the conversation of the active session."),
    isolation === "worktree" && sentence("Works in a worktree of its own."),
    isolation === "folder" && sentence("Works in the folder itself."),
  ];
  const prompt = input.text("prompt") ?? "";
  const isCut = prompt.length > PROMPT_EXCERPT;
  const launches =
    resumed === undefined ? sentence("Launch a background task?") : sentence("Resume a background task?");
  return {
    title: steered === undefined ? launches : sentence("Send a message to a background task?"),
    facts: facts.filter((fact) => fact !== false),
    prompt: head(prompt, PROMPT_EXCERPT),
    notes: isCut ? [sentence("… the prompt has {0} characters in total.", prompt.length)] : [],
    tasks: [],
  };
}

/**
 * @param below what is cancelled with the tasks
 * @param unknown what the call names, in place of tasks that aren't known
 */
function tasksQuestion(
  title: Text,
  tasks: readonly Task[],
  below: readonly Task[],
  unknown: readonly Text[],
  cancels = false,
): CallQuestion {
  const running = cancels ? tasks.filter(isActive).length : 0;
  const facts = [
    ...namesOf(tasks),
    ...(running > 0 ? [sentence("Still running, and also cancelled: {0}.", running)] : []),
    ...(below.length > 0 ? [sentence("Running below, and also cancelled: {0}.", below.length)] : []),
    ...namesOf(below),
  ];
  return {
    title,
    facts: tasks.length > 0 ? facts : unknown,
    notes: [],
    tasks: [...tasks, ...below].map((task) => ({ id: task.id, isActive: isActive(task) })),
  };
}

function namesOf(tasks: readonly Task[]): readonly Text[] {
  const rest = tasks.length - MOST_NAMED;
  return [
    ...tasks.slice(0, MOST_NAMED).map(({ description }) => line(description)),
    ...(rest > 0 ? [sentence("… and {0} more.", rest)] : []),
  ];
}

function targetFacts(input: ToolInput): readonly Text[] {
  const [taskID, batchID] = [input.id("task_id"), input.id("batch_id")];
  return [
    ...(taskID === undefined ? [] : [sentence("Task: {0}", line(taskID))]),
    ...(batchID === undefined ? [] : [sentence("Batch: {0}", line(batchID))]),
  ];
}

/** @param count the number of tasks; 0 if they are unknown */
function cancelTitle(count: number): Text {
  if (count === 0) return sentence("Cancel background tasks?");
  return count === 1
    ? sentence("Cancel this background task?")
    : sentence("Cancel {0} background tasks?", count);
}

/** @param count the number of tasks; 0 if they are unknown */
function clearTitle(count: number): Text {
  if (count === 0) return sentence("Clear background tasks from the list?");
  return count === 1
    ? sentence("Clear this background task from the list?")
    : sentence("Clear {0} background tasks from the list?", count);
}

function nameOf(reference: string, { known, caller }: TargetContext): string {
  try {
    return line(known.find(reference, caller.sessionID).description);
  } catch {
    return line(reference);
  }
}

function line(text: string): string {
  return oneLine(text, LINE);
}
