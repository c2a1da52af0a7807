import assert from "node:assert/strict";
import type { Task } from "../../../src/engine/task.ts";
import { rowTitles, shortTitle } from "../../../src/ui/tree/titles.ts";

/** The titles of tasks with these descriptions, in this order; `batchID` puts all of them into one batch. */
function titles(descriptions: readonly string[], batchID?: string): readonly (string | undefined)[] {
  const tasks = descriptions.map(
    (description, index) => ({ id: `${index}`, description, batchID: batchID ?? `b${index}` }) as Task,
  );
  const found = rowTitles(tasks, () => tasks);
  return tasks.map(({ id }) => found.get(id));
}

describe("the short titles of rows", () => {
  it("a short description is its own title, whatever others begin with", () => {
    assert.deepEqual(titles(["Fix the lexer", "Fix the parser"]), ["Fix the lexer", "Fix the parser"]);
  });

  it("a long one is cut after a word", () => {
    assert.deepEqual(titles(["Find out why the tests of the parser are so slow"]), [
      "Find out why the tests of the…",
    ]);
    assert.equal(shortTitle("x".repeat(40)), `${"x".repeat(31)}…`);
    assert.equal(shortTitle("x".repeat(32)), "x".repeat(32));
  });

  it("long ones that begin alike can be told apart", () => {
    const others = [
      "Kilo's Agent Manager",
      "the Testing view",
      "the chat sessions of VS Code",
      "OpenCode itself",
    ];
    assert.deepEqual(titles(others.map((other) => `Compare our implementation with ${other}`)), [
      "Compare … Kilo's Agent Manager",
      "Compare … Testing view",
      "Compare … chat sessions of VS…",
      "Compare … OpenCode itself",
    ]);
  });

  it("long ones that begin alike can be told apart even if one of them was launched twice", () => {
    const [lexer, parser] = ["lexer", "parser"].map((part) => `Compare our implementation with the ${part}`);
    assert.deepEqual(titles([lexer!, parser!, lexer!]), [
      "Compare … lexer",
      "Compare … parser",
      "Compare … lexer",
    ]);
  });

  it("equal ones keep what they say", () => {
    const same = "Find out why the tests of the parser are so slow";
    assert.deepEqual(titles([same, same]), [
      "Find out why the tests of the…",
      "Find out why the tests of the…",
    ]);
  });

  it("the rows of a batch do not repeat its name", () => {
    assert.deepEqual(titles(["Review the lexer", "Review the parser"], "b"), ["lexer", "parser"]);
    assert.deepEqual(titles(["Write chapter 1", "Write chapter 2"], "b"), ["chapter 1", "chapter 2"]);
    assert.deepEqual(titles(["Port module 1 to it", "Port module 2 to it"], "b"), [
      "module 1 to it",
      "module 2 to it",
    ]);
    assert.deepEqual(titles(["Fix the login", "Fix the login"], "b"), ["Fix the login", "Fix the login"]);
    assert.deepEqual(titles(["Fix one", "Test two"], "b"), ["Fix one", "Test two"]);
  });
});
