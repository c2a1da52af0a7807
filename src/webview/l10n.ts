/** What people read, in the editor's language. */
export class L10n {
  /** @param translations by their English text */
  constructor(private readonly translations: Readonly<Record<string, string>>) {}

  /** Values go in the place of `{0}`, `{1}`, … */
  t(english: string, ...values: readonly string[]): string {
    const text = this.translations[english] ?? english;
    return text.replace(/\{(\d)\}/g, (place, index: string) => values[Number(index)] ?? place);
  }
}
