import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import { Refusal } from "../../engine/errors.ts";
import type { PendingRequest, QuestionRequest, RequestAnswer } from "../../engine/server-model.ts";
import { shortID } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { BACK } from "../quick-input.ts";
import { answerOneOf, answerRequest } from "../requests/answer-flow.ts";
import { ancestors } from "../tree/family.ts";
import { isFromCode, type Command } from "./command.ts";
import { findChild } from "./pick-task.ts";

/**
 * Lets the person answer what an agent waits for; nothing is ever allowed by itself. A program names who waits, and may
 * give the answer: `{reply, message?}` to a permission, `{answers}` to a question, `{dismiss: true}` to either, with a
 * `requestID` where it means one of several.
 */
export const answer: Command = {
  isAboutTask: true,
  async run(context, argument, given) {
    const { known, tasks } = context;
    if (argument === undefined) return answerOneOf(context, () => known.openRequests());
    const { id } = findChild(context, argument);
    const waiting = requestsBelow(known, id);
    if (isFromCode([argument]) && given !== undefined) {
      const { request } = chooseRequest(waiting, id, given);
      const answered = readAnswer(request, given);
      await tasks.answer(request, answered);
      return answered;
    }
    const [oldest] = waiting;
    if (!oldest)
      return void vscode.window.showInformationMessage(vscode.l10n.t("This agent does not wait for you."));
    const answered = await answerRequest(context, oldest);
    return answered === BACK ? undefined : answered;
  },
};

/** What waits for a person at this agent, or at one that works for it. */
function requestsBelow(known: Tasks, id: string): readonly OpenRequest[] {
  const own = known.openRequests().filter(({ child }) => child.id === id);
  return own.length > 0
    ? own
    : known.openRequests().filter(({ child }) => ancestors(known, child).includes(id));
}

function chooseRequest(waiting: readonly OpenRequest[], id: string, given: unknown): OpenRequest {
  const requestID = field(given, "requestID");
  if (requestID !== undefined && typeof requestID !== "string")
    throw invalid('"requestID" must be a string.');
  const chosen = waiting.find(({ request }) => requestID === undefined || request.id === requestID);
  if (chosen) return chosen;
  throw new Refusal(
    "wrong-status",
    requestID === undefined
      ? `Agent ${shortID(id)} waits for no answer now.`
      : `Agent ${shortID(id)} does not wait for an answer to ${requestID} now.`,
  );
}

function readAnswer(request: PendingRequest, given: unknown): RequestAnswer {
  const [reply, message, answers] = ["reply", "message", "answers"].map((name) => field(given, name));
  if (field(given, "dismiss") === true) return { type: "dismiss" };
  if (request.type === "question") return { type: "question", answers: readAnswers(request, answers) };
  if (reply !== "once" && reply !== "always" && reply !== "reject")
    throw invalid('The answer to a permission is {reply: "once", "always" or "reject"}, or {dismiss: true}.');
  if (message !== undefined && (typeof message !== "string" || reply !== "reject"))
    throw invalid('"message" must be a string, and goes with the reply "reject" alone.');
  return { type: "permission", reply, message };
}

function readAnswers({ questions }: QuestionRequest, given: unknown): readonly (readonly string[])[] {
  if (!Array.isArray(given) || given.length !== questions.length)
    throw invalid(`"answers" must hold one list for each of the ${questions.length} questions.`);
  return questions.map(({ question, options, multiple, custom }, at) => {
    const labels: unknown = given[at];
    if (
      !Array.isArray(labels) ||
      !labels.every((label): label is string => typeof label === "string" && label !== "")
    )
      throw invalid(`The answer to "${question}" must be a list of texts.`);
    if (labels.length === 0 || (labels.length > 1 && !multiple))
      throw invalid(`The question "${question}" takes ${multiple ? "at least one answer" : "one answer"}.`);
    const unknown = labels.find((label) => !options.some((option) => option.label === label));
    if (unknown !== undefined && !custom)
      throw invalid(`The question "${question}" has no option "${unknown}".`);
    return labels;
  });
}

function field(given: unknown, name: string): unknown {
  if (typeof given !== "object" || given === null)
    throw invalid("The answer must be an object: {reply}, {answers} or {dismiss: true}.");
  return (given as Readonly<Record<string, unknown>>)[name];
}

function invalid(message: string): Refusal {
  return new Refusal("invalid-argument", message);
}
