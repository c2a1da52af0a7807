/** A text as a block of code, with a fence that is longer than any in it. */
export function fenced(text: string, language: string): string {
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text.replace(/\n?$/, "\n")}${fence}`;
}

/** A text of one line as code in a sentence. */
export function codeSpan(text: string): string {
  const ticks = "`".repeat(longestRun(text) + 1);
  const space = /^`|`$/.test(text) ? " " : "";
  return `${ticks}${space}${text}${space}${ticks}`;
}

/** How many backticks follow one another at the most. */
function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}
