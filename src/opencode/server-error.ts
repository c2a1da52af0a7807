import { head } from "../engine/fork/excerpt.ts";

const MAX_CHARS = 500;

/** Describes the body of an error response in one line. */
export function describeServerError(body: unknown): string {
  const { data, message, name } = asRecord(body);
  const { message: dataMessage, path, issues } = asRecord(data);
  const text = firstText(dataMessage, message, describeIssues(issues), name, body) ?? "no reason given";
  const where = firstText(path);
  const line = head(text.replace(/\s+/g, " "), MAX_CHARS);
  return where ? `${line} (in ${where})` : line;
}

/** Describes the issues of an invalid configuration, each with path and message. */
function describeIssues(issues: unknown): string | undefined {
  if (!Array.isArray(issues)) return undefined;
  return issues
    .map(asRecord)
    .map(({ path, message }) =>
      [Array.isArray(path) ? path.join(".") : "", firstText(message)].filter(Boolean).join(": "),
    )
    .join("; ");
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function firstText(...values: readonly unknown[]): string | undefined {
  for (const value of values) if (typeof value === "string" && value.trim()) return value.trim();
  return undefined;
}
