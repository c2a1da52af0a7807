import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";

const source = join(import.meta.dirname, "../../src");
const MAX_LINES = 400;
const MAX_PARAMETERS = 5;

describe("the source", () => {
  const files = new Map(
    readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => [name, readFileSync(join(source, name), "utf8")]),
  );

  it("has no file of more than 400 lines", () => {
    const long = [...files].filter(([, text]) => text.split("\n").length - 1 > MAX_LINES);
    assert.deepEqual(
      long.map(([name]) => name),
      [],
    );
  });

  it("has no constructor with more than five parameters", () => {
    const constructors = [...files].flatMap(([name, text]) =>
      constructorsIn(name, text).map(({ parameters }) => ({ name, count: parameters.length })),
    );
    assert.ok(constructors.length > 50);
    assert.deepEqual(
      constructors.filter(({ count }) => count > MAX_PARAMETERS),
      [],
    );
  });

  it("names the routes of the server only in src/opencode", () => {
    const route =
      /["'`](?:[A-Z]+ )?\/(?:api|session|global|sync|permission|question|agent|provider|config|event|instance|mcp|experimental)\b[^"'`\s]*["'`]/;
    const naming = [...files].filter(([, text]) => route.test(text)).map(([name]) => name);
    assert.ok(naming.length > 0);
    assert.deepEqual(
      naming.filter((name) => !name.startsWith("opencode/")),
      [],
    );
  });

  it("has no circular imports, including types", () => {
    // Dynamic imports may be circular.
    const imports = new Map([...files].map(([name, text]) => [name, importsOf(name, text)]));
    assert.ok([...imports.values()].flat().length > files.size);
    for (let left = imports; left.size > 0;) {
      const free = [...left].filter(([, needed]) => !needed.some((name) => left.has(name)));
      assert.ok(free.length > 0, `These import one another, or what does: ${[...left.keys()].join(", ")}`);
      left = new Map([...left].filter(([name]) => !free.some(([done]) => done === name)));
    }
  });
});

/** The source files that this one imports statically. */
function importsOf(name: string, text: string): readonly string[] {
  return [...text.matchAll(/^(?:import|export)\b[^;]*? from "(\.[^"]+)";$/gm)].map(([, path = ""]) =>
    relative(source, join(source, dirname(name), path)),
  );
}

function constructorsIn(name: string, text: string): readonly ts.ConstructorDeclaration[] {
  const found: ts.ConstructorDeclaration[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isConstructorDeclaration(node)) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, text, ts.ScriptTarget.Latest));
  return found;
}
