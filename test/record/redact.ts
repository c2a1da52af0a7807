import { homedir } from "node:os";

const SECRET =
  /"([^"]*(?:pass|secret|api_?key|authorization|credential|email|token)[^"]*)":"(?:[^"\\]|\\.)*"/gi;

/** Removes from JSON what says who recorded it and where. `places` are texts, each with what replaces it. */
export function redacted(json: string, places: Readonly<Record<string, string>>): string {
  const known = { ...places, [homedir()]: "HOME" };
  let text = json.replace(SECRET, '"$1":"REDACTED"');
  // The longest first, as one may be part of another.
  for (const [place, name] of Object.entries(known).sort(([one], [other]) => other.length - one.length))
    text = text.replaceAll(JSON.stringify(place).slice(1, -1), name);
  return text;
}

/** The form of a value: names and types, and of each list its first item. For what belongs to the user. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== "object" || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shapeOf(item)]));
}
