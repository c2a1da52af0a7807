import { readFileSync } from "node:fs";
import ts from "typescript";

/** What other extensions get of this one. */
const API = /src[\\/]ui[\\/]api\.ts$/;

/**
 * The names that only members of our classes have which nothing outside of the bundle uses: the private ones, and those
 * that are functions, which no message carries. A bundler can shorten them. A name that no class declares may be that of
 * another extension's function.
 * @param {readonly string[]} files all files of the bundle
 */
export function ownNames(files) {
  const { config } = ts.readConfigFile("tsconfig.json", ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ".");
  const sources = files.filter((file) => file.endsWith(".ts"));
  const program = ts.createProgram(sources, options);
  const checker = program.getTypeChecker();
  const found = new Set();
  const others = new Set();
  const ofClasses = new Set();
  const visit = (node, isOurs) => {
    // A text may be the name of a member, too, unless it only selects members of a type.
    if (ts.isStringLiteralLike(node) && !isSelection(node.parent)) others.add(node.text);
    if (isOurs && ts.isClassElement(node) && node.name) ofClasses.add(node.name.text);
    if (ts.isParameter(node) && ts.isParameterPropertyDeclaration(node, node.parent))
      ofClasses.add(node.name.text);
    if (ts.isIdentifier(node) && isMemberName(node))
      (isOurs && isOwn(memberOf(node, checker), checker) ? found : others).add(node.text);
    ts.forEachChild(node, (child) => visit(child, isOurs));
  };
  for (const source of program.getSourceFiles())
    // The editor, Node and packages call our objects by the names that they declare.
    if (source.isDeclarationFile) visit(source, false);
    else if (sources.some((file) => source.fileName.endsWith(file)))
      visit(source, !API.test(source.fileName));
  for (const file of files.filter((each) => each.endsWith(".js")))
    visit(ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true), false);
  return [...found].filter((name) => ofClasses.has(name) && !others.has(name));
}

/** Whether the parent of a text is an argument of `Pick` or `Omit`. */
function isSelection(literal) {
  const { parent } = literal;
  const user = ts.isUnionTypeNode(parent) ? parent.parent : parent;
  return (
    ts.isLiteralTypeNode(literal) && ts.isTypeReferenceNode(user) && /^(Pick|Omit)$/.test(user.typeName.text)
  );
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

function memberOf(node, checker) {
  const { parent } = node;
  return ts.isBindingElement(parent)
    ? checker.getTypeAtLocation(parent.parent).getProperty(node.text)
    : checker.getSymbolAtLocation(node);
}

function isOwn(member, checker) {
  const declarations = member?.declarations ?? [];
  const isPrivate = (one) => ts.getCombinedModifierFlags(one) & ts.ModifierFlags.Private;
  if (declarations.length === 0 || declarations.some((one) => one.getSourceFile().isDeclarationFile))
    return false;
  return declarations.every(isPrivate) || (declarations.every(isMember) && isFunction(member, checker));
}

function isMember(node) {
  return (
    ts.isClassElement(node) ||
    ts.isTypeElement(node) ||
    ts.isObjectLiteralElement(node) ||
    ts.isParameter(node)
  );
}

function isFunction(member, checker) {
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(member));
  return type.getCallSignatures().length > 0;
}
