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
