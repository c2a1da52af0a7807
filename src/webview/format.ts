/** Digits after the point that dollars have at least, and at most. */
const CENTS = 2;
const MOST_DIGITS = 20;

/** Numbers and times as the person's language writes them. */
export class Formatter {
  private readonly compact: Intl.NumberFormat;
  private readonly exact: Intl.NumberFormat;
  private readonly time: Intl.DateTimeFormat;

  constructor(private readonly locale: string) {
    this.compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
    this.exact = new Intl.NumberFormat(locale);
    this.time = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
  }

  /** `850 ms`, `4.2 s`, and from ten seconds on as {@link elapsed}. */
  duration(ms: number): string {
    if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
    if (ms < 10_000)
      return `${new Intl.NumberFormat(this.locale, { maximumFractionDigits: 1 }).format(ms / 1_000)} s`;
    return this.elapsed(ms);
  }

  /** In whole seconds, as the tree writes them: `12 s`, `3 m 20 s`, `2 h 5 m`. */
  elapsed(ms: number): string {
    const seconds = Math.max(0, Math.round(ms / 1_000));
    if (seconds < 60) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    return minutes < 60
      ? twoUnits(minutes, "m", seconds % 60, "s")
      : twoUnits(Math.floor(minutes / 60), "h", minutes % 60, "m");
  }

  /** US dollars and cents; small amounts keep two digits that count. */
  cost(dollars: number): string {
    const digits = dollars > 0 ? 1 + Math.ceil(-Math.log10(dollars)) : 0;
    return new Intl.NumberFormat(this.locale, {
      style: "currency",
      currency: "USD",
      maximumFractionDigits: Math.min(Math.max(digits, CENTS), MOST_DIGITS),
    }).format(dollars);
  }

  /** `12.3K`. */
  amount(count: number): string {
    return this.compact.format(count);
  }

  number(count: number): string {
    return this.exact.format(count);
  }

  moment(at: number): string {
    return this.time.format(at);
  }
}

function twoUnits(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}
