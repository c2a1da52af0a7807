import type { Context } from "./context.ts";

/** Why texts can't be sent if one is longer than this many characters. Undefined if they can. */
export function whyTooLong(
  texts: readonly string[],
  limit: number,
  { l10n, format }: Pick<Context, "l10n" | "format">,
): string | undefined {
  if (texts.every(({ length }) => length <= limit)) return undefined;
  return l10n.t(
    "Texts can have up to {0} characters. Save this one in a file, and name the file here instead.",
    format.number(limit),
  );
}
