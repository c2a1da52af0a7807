/** Splits a text into prompts at lines of `---`, leaving out blank sections. */
export function splitSections(text: string): readonly string[] {
  return text
    .split(/^-{3,}[ \t]*$/m)
    .map((section) => section.trim())
    .filter(Boolean);
}

export function joinSections(prompts: readonly string[]): string {
  return prompts.join("\n\n---\n\n");
}
