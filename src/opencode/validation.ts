import * as z from "zod/mini";

/** In characters. */
const MAX_NAME = 60;

/** A value does not match its schema. The message names the field. */
export class ValidationError extends Error {
  override readonly name = "ValidationError";
}

/** The parsed value. Throws a {@link ValidationError} if it does not match the schema. */
export function parse<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  throw new ValidationError(describeIssue(result.error.issues[0]));
}

/** The parsed value. Undefined if it does not match the schema. */
export function tryParse<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> | undefined {
  const result = z.safeParse(schema, value);
  return result.success ? result.data : undefined;
}

function describeIssue(issue: z.core.$ZodIssue | undefined): string {
  if (!issue) return "does not fit";
  const path = issue.path.reduce<string>(
    (left, key) =>
      typeof key === "number" ? `${left}[${key}]` : left ? `${left}.${nameOf(key)}` : nameOf(key),
    "",
  );
  const expected =
    issue.code === "invalid_type"
      ? `is not of type ${issue.expected}`
      : issue.code === "invalid_value"
        ? `is none of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`
        : issue.code === "invalid_union"
          ? "has an unknown value"
          : `does not fit (${issue.code})`;
  return `${path ? `"${path}"` : "the answer"} ${expected}`;
}

/** The other side chooses some names, such as the IDs of sessions. */
function nameOf(key: PropertyKey): string {
  const name = String(key).replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
}
