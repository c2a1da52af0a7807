import { formatDuration } from "../engine/notice-text.ts";

type NumberFormats = Readonly<Record<"exact" | "compact" | "dollars", Intl.NumberFormat>>;

/** Formats numbers and times in the editor's language. */
export class Formatter {
  private formats: NumberFormats | undefined;

  /** @param locale as a BCP 47 tag */
  constructor(private readonly locale: string) {}

  /** `850 ms`, `12 s`, `3 m 20 s`, `2 h 5 m`. */
  duration(ms: number): string {
    return formatDuration(ms);
  }

  /** US dollars, rounded to cents; amounts below 10 cents keep two significant digits. */
  cost(dollars: number): string {
    return this.numbers.dollars.format(Number(dollars < 0.1 ? dollars.toPrecision(2) : dollars.toFixed(2)));
  }

  /** `12.3K`. */
  amount(count: number): string {
    return this.numbers.compact.format(count);
  }

  number(count: number): string {
    return this.numbers.exact.format(count);
  }

  moment(at: number): string {
    return new Date(at).toLocaleString(this.locale, { dateStyle: "medium", timeStyle: "medium" });
  }

  /** Made at the first use: the first one of a process loads the data of its language, which takes milliseconds. */
  private get numbers(): NumberFormats {
    const { locale } = this;
    return (this.formats ??= {
      exact: new Intl.NumberFormat(locale),
      compact: new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }),
      dollars: new Intl.NumberFormat(locale, {
        style: "currency",
        currency: "USD",
        maximumFractionDigits: 20,
      }),
    });
  }
}
