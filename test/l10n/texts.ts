import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/* The texts that people read, in English as the product has them and in the languages that they are translated into. */

const repository = fileURLToPath(new URL("../../", import.meta.url));
const BUNDLE = /^bundle\.l10n\.(.+)\.json$/;

/** Texts by their keys; those of the sources are their own keys. */
type Texts = Readonly<Record<string, string>>;

/** One file of translations, beside what it translates. */
export interface Translation {
  /** From the repository's root. */
  readonly file: string;
  readonly english: Texts;
  readonly translated: Texts;
}

/** Every file that there is, or ought to be, for the languages that have a bundle. */
export function translations(): readonly Translation[] {
  const languages = readdirSync(join(repository, "l10n")).flatMap((name) => BUNDLE.exec(name)?.[1] ?? []);
  const [ofSources, ofManifest] = [sourceTexts(), readTexts("package.nls.json")];
  return languages.flatMap((language) => [
    read(join("l10n", `bundle.l10n.${language}.json`), ofSources),
    read(`package.nls.${language}.json`, ofManifest),
  ]);
}

/** Keys of texts that have no translation yet. */
export function missing({ english, translated }: Translation): readonly string[] {
  return Object.keys(english).filter((key) => !translated[key]);
}

/** Keys of translations whose text is gone. */
export function surplus({ english, translated }: Translation): readonly string[] {
  return Object.keys(translated).filter((key) => english[key] === undefined);
}

/** Writes the file anew: every text once and in order, those that are to be translated empty. */
export function update({ file, english, translated }: Translation): void {
  const texts = Object.fromEntries(Object.keys(english).map((key) => [key, translated[key] ?? ""]));
  writeFileSync(join(repository, file), `${JSON.stringify(texts, null, 2)}\n`);
}

function read(file: string, english: Texts): Translation {
  return { file, english, translated: readTexts(file) };
}

function readTexts(file: string): Texts {
  try {
    return JSON.parse(readFileSync(join(repository, file), "utf8")) as Texts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}

/** What `l10n.t` and `sentence` are given, in the order of the alphabet. */
function sourceTexts(): Texts {
  const texts = new Set<string>();
  for (const name of readdirSync(join(repository, "src"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const source = readFileSync(join(repository, "src", name), "utf8");
    for (const text of textsIn(ts.createSourceFile(name, source, ts.ScriptTarget.Latest))) texts.add(text);
  }
  return Object.fromEntries([...texts].sort().map((text) => [text, text]));
}

function* textsIn(node: ts.Node): Iterable<string> {
  if (ts.isCallExpression(node) && isTranslated(node.expression)) {
    const [first] = node.arguments;
    // Anything else than a literal is refused by a rule of lint.
    if (first && ts.isStringLiteralLike(first)) yield first.text;
  }
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* textsIn(child);
}

/** `sentence(…)`, `l10n.t(…)` or `vscode.l10n.t(…)` */
function isTranslated(callee: ts.Expression): boolean {
  if (ts.isIdentifier(callee)) return callee.text === "sentence";
  if (!ts.isPropertyAccessExpression(callee) || callee.name.text !== "t") return false;
  const { expression } = callee;
  const owner = ts.isPropertyAccessExpression(expression) ? expression.name : expression;
  return ts.isIdentifier(owner) && owner.text === "l10n";
}
