import { formatDuration } from "../engine/notice-text.ts";

/** Formats numbers and times in the editor's language. */
export class Formatter {
  private readonly exact: Intl.NumberFormat;
  private readonly compact: Intl.NumberFormat;
  private readonly dollars: Intl.NumberFormat;

  /** @param locale as a BCP 47 tag */
  constructor(private readonly locale: string) {
    this.exact = new Intl.NumberFormat(locale);
    this.compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
    this.dollars = new Intl.NumberFormat(locale, {
      style: "currency",
      currency: "USD",
      maximumFractionDigits: 20,
    });
  }

  /** `850 ms`, `12 s`, `3 m 20 s`, `2 h 5 m`. */
  duration(ms: number): string {
    return formatDuration(ms);
  }

  /** US dollars, rounded to cents; amounts below 10 cents keep two significant digits. */
  cost(dollars: number): string {
    return this.dollars.format(Number(dollars < 0.1 ? dollars.toPrecision(2) : dollars.toFixed(2)));
  }

  /** `12.3K`. */
  amount(count: number): string {
    return this.compact.format(count);
  }

  number(count: number): string {
    return this.exact.format(count);
  }

  moment(at: number): string {
    return new Date(at).toLocaleString(this.locale, { dateStyle: "medium", timeStyle: "medium" });
  }
}
