import { readFileSync } from "node:fs";
import ts from "typescript";

/**
 * The names that only private members of classes have, and all members of our classes, whose objects leave no
 * process. A bundler can shorten them, because nothing else uses them: neither the editor nor another program, nor a
 * package.
 * @param {readonly string[]} files all files of the bundle
 */
export function privateNames(files) {
  const { config } = ts.readConfigFile("tsconfig.json", ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ".");
  const sources = files.filter((file) => file.endsWith(".ts"));
  const program = ts.createProgram(sources, options);
  const checker = program.getTypeChecker();
  const found = new Set();
  const others = new Set();
  const known = new Set();
  for (const library of program.getSourceFiles().filter(({ isDeclarationFile }) => isDeclarationFile))
    addNames(library, known);
  const visit = (node, isOurs) => {
    // A text may be the name of a member, too, but not one in a type.
    if (ts.isStringLiteralLike(node) && !ts.isLiteralTypeNode(node.parent)) others.add(node.text);
    // What a module exports is a member of it for those who load it later.
    if (ts.isIdentifier(node) && isExported(node)) others.add(node.text);
    if (ts.isIdentifier(node) && isMemberName(node))
      (isOurs && isOwn(memberOf(node, checker), known.has(node.text)) ? found : others).add(node.text);
    ts.forEachChild(node, (child) => visit(child, isOurs));
  };
  for (const source of sources) visit(program.getSourceFile(source), true);
  for (const file of files.filter((each) => each.endsWith(".js")))
    visit(ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true), false);
  return [...found].filter((name) => !others.has(name));
}

/** The files whose interfaces are only for objects that are neither kept nor sent anywhere. */
const STAYING =
  /(?:^|\/)src\/ui\/(?:commands\/(?:command|pick|ask-prompt|launching)|folders\/folders|output\/output-parts|tree\/levels|task-notifications|quick-input|wizard)\.ts$/;

/** What the editor, Node or a package may call a member of ours by. */
function addNames(library, names) {
  const visit = (node) => {
    if (ts.isIdentifier(node)) names.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(library);
}

/** Whether the bundler takes this name for one of a member. */
function isMemberName(node) {
  const { parent } = node;
  if (ts.isBindingElement(parent))
    return ts.isObjectBindingPattern(parent.parent) && (parent.propertyName ?? parent.name) === node;
  if (ts.isParameter(parent)) return ts.isParameterPropertyDeclaration(parent, parent.parent);
  return (
    parent.name === node &&
    (ts.isPropertyAccessExpression(parent) ||
      ts.isClassElement(parent) ||
      ts.isTypeElement(parent) ||
      ts.isObjectLiteralElement(parent))
  );
}

function isExported(node) {
  const { parent } = node;
  if (ts.isExportSpecifier(parent)) return true;
  const isDeclared =
    ts.isFunctionDeclaration(parent) || ts.isClassDeclaration(parent) || ts.isVariableDeclaration(parent);
  return (
    isDeclared &&
    parent.name === node &&
    Boolean(ts.getCombinedModifierFlags(parent) & ts.ModifierFlags.Export)
  );
}

function memberOf(node, checker) {
  const { parent } = node;
  if (ts.isBindingElement(parent)) return checker.getTypeAtLocation(parent.parent).getProperty(node.text);
  const wanted = ts.isObjectLiteralElement(parent) && checker.getContextualType(parent.parent);
  return (wanted && wanted.getProperty(node.text)) || checker.getSymbolAtLocation(node);
}

/** @param isKnown whether the name is also one of the editor, of Node or of a package */
function isOwn(member, isKnown) {
  const declarations = member?.declarations ?? [];
  const isPrivate = (one) => ts.getCombinedModifierFlags(one) & ts.ModifierFlags.Private;
  const isOfOurs = (one) => {
    const { fileName } = one.getSourceFile();
    if (isKnown || !/(?:^|\/)src\//.test(fileName)) return false;
    return ts.isClassElement(one) || ts.isParameter(one) || (ts.isTypeElement(one) && STAYING.test(fileName));
  };
  return declarations.length > 0 && declarations.every((one) => isPrivate(one) || isOfOurs(one));
}
