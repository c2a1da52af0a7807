/** Matches the text in any case; white space in it matches any white space. Undefined if there is nothing to find. */
export function findExpression(query: string): RegExp | undefined {
  const words = query.trim().split(/\s+/);
  if (words[0] === "") return undefined;
  return new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("\\s+"), "giu");
}

/** How often the expression matches. */
export function countMatches(text: string, expression: RegExp): number {
  return text.match(expression)?.length ?? 0;
}
