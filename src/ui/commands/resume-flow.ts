import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { STATUS_WORDS } from "../../engine/transitions.ts";
import { humanMessage } from "../human-error.ts";
import { quotedSelection } from "../prompt-editor/editor-text.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { PromptContext } from "./command.ts";

/** Asks for a follow-up to a completed task and resumes it; a subagent of others is adopted with it. */
export async function resumeAsking(context: PromptContext, child: Child): Promise<Task | undefined> {
  const { memory, promptEditors, tasks, logger } = context;
  const { id, description, status } = child;
  if (status !== "completed" && status !== "idle")
    throw new Refusal(
      "wrong-status",
      sentence("Only completed tasks can be resumed: this one has the status {0}.", STATUS_WORDS[status]),
    );
  const draft = `resume ${id}`;
  for (let problem: string | undefined; ;) {
    const answer = await askPrompt(memory, {
      title: isTask(child)
        ? vscode.l10n.t("Resume: {0}", description)
        : vscode.l10n.t("Adopt and Resume: {0}", description),
      hint: isTask(child)
        ? vscode.l10n.t("What is it to do next? It remembers its whole conversation.")
        : vscode.l10n.t(
            "What is it to do next? It becomes a task of yours, and remembers its whole conversation.",
          ),
      placeholder: vscode.l10n.t("For example: now mend what you found."),
      draft,
      problem,
    });
    if (!answer) return undefined;
    if (answer.goes === "editor") {
      await promptEditors.open({ kind: "resume", taskID: id, description }, answer.text || quotedSelection());
      memory.dropDraft(draft, answer.text);
      return undefined;
    }
    try {
      const { text } = answer;
      return await memory.send({ name: draft, text }, () => tasks.resume(id, text));
    } catch (error) {
      logger.error("The task was not resumed.", error);
      problem = humanMessage(error);
    }
  }
}
