import { excerpt, head } from "../../engine/fork/excerpt.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { title } from "../plain-text.ts";

/** The longest title of a row, in characters. */
const LENGTH = 32;
/** The least number of words that the descriptions must share for them to name the batch. */
const COMMON_WORDS = 2;
/** The longest name of a batch, in characters; leaves room for the counts. */
const NAME_LENGTH = 24;

/** The words that name a batch because all of its descriptions begin with them. Empty if they share too little. */
export function batchWords(tasks: readonly Pick<Task, "description">[]): readonly string[] {
  const [first = [], ...others] = tasks.map(({ description }) => title(description).split(" "));
  const common = commonWords(first, others);
  if (common.length < COMMON_WORDS) return [];
  while (common.length > COMMON_WORDS && common.join(" ").length > NAME_LENGTH) common.pop();
  return common;
}

/** The name of a batch, cut to what fits. */
export function batchName(words: readonly string[]): string {
  return excerpt(words.join(" "), NAME_LENGTH);
}

/**
 * The short titles of rows under one session, by the IDs of their children. A batch's rows leave out the batch's name;
 * long titles of other rows that begin alike leave out what they share, so that they can be told apart.
 */
export function rowTitles(
  children: readonly Child[],
  membersOf: (task: Task) => readonly Task[],
): ReadonlyMap<string, string> {
  const titles = new Map<string, string>();
  const single = new Map<string, string[]>();
  const names = new Map<string, readonly string[]>();
  const sizes = countBy(children.filter(isTask).map(({ batchID }) => batchID));
  for (const child of children) {
    const whole = title(child.description);
    if (!isTask(child) || sizes.get(child.batchID) === 1) {
      single.set(whole, [...(single.get(whole) ?? []), child.id]);
      continue;
    }
    let name = names.get(child.batchID);
    if (!name) names.set(child.batchID, (name = batchWords(membersOf(child))));
    titles.set(child.id, cut(without(whole.split(" "), name.length).join(" ")));
  }
  // Of sorted titles, neighbours share the most. Equal ones, as of a task and its retry, are one.
  const sorted = [...single.keys()].toSorted().map((whole) => whole.split(" "));
  for (const [index, words] of sorted.entries()) {
    const shared = [sorted[index - 1], sorted[index + 1]].map((other) =>
      other ? commonWords(words, [other]).length : 0,
    );
    const short = distinct(words, Math.max(...shared));
    for (const id of single.get(words.join(" ")) ?? []) titles.set(id, short);
  }
  return titles;
}

/** The title of a row that nothing else is known of. */
export function shortTitle(description: string): string {
  return cut(title(description));
}

/** A title of these words, of which others begin with the first `shared`. */
function distinct(words: readonly string[], shared: number): string {
  const whole = words.join(" ");
  if (whole.length <= LENGTH || shared < COMMON_WORDS) return cut(whole);
  const rest = without(words, shared).join(" ");
  return rest === whole ? cut(whole) : cut(`${words[0] ?? ""} … ${rest}`);
}

/** The words after the first ones, from one that says something; all of them if nothing would be left. */
function without(words: readonly string[], count: number): readonly string[] {
  if (count === words.length) return words;
  let from = count;
  while (from > 0 && !/\p{L}{2}/u.test(words[from] ?? "")) from--;
  return words.slice(from);
}

/** Cuts a text that is too long, where possible after a word. */
function cut(text: string): string {
  if (text.length <= LENGTH) return text;
  const start = head(text, LENGTH - 1);
  const end = start.lastIndexOf(" ");
  return `${end > LENGTH / 2 ? start.slice(0, end) : start}…`;
}

function commonWords(first: readonly string[], others: readonly (readonly string[])[]): string[] {
  const differs = first.findIndex((word, index) => others.some((words) => words[index] !== word));
  return differs === -1 ? [...first] : first.slice(0, differs);
}

function countBy(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
