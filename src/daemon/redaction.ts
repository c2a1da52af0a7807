const HIDDEN = "[redacted]";
/** A shorter value could be a word that has nothing to do with a secret. */
const MIN_SECRET = 6;

const SECRET_NAME = /key|token|secret|pass|auth|cred|cookie|private/i;

/** Words in the names of secrets. A `key` alone is rarely one. */
const NAMES = "(?:api|access|secret|private|[-_])[-_]?key|token|secret|passw(?:or)?d|passphrase|credential";
const QUOTE = String.raw`\\*["']?`;

/** What looks like a secret wherever it is. In each, the first group is kept. */
const PATTERNS: readonly RegExp[] = [
  // The user and password in an address.
  /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/"]+(?=@)/gi,
  // The same for this computer, even if it is no URL.
  /(\b[\w.-]+:)[^\s"]+(?=@(?:localhost|127\.|\[::1\]))/gi,
  // The header of a request.
  /(\b(?:Basic|Bearer)\s+)[\w.~+/=-]+/gi,
  /(\bauthorization\\*["']?\s*[:=]\s*\\*["']?(?:[a-z]+\s+)?)[\w.~+/=-]+/gi,
  // A name and its value, as in JSON, an environment or an address. JSON may be quoted in JSON.
  new RegExp(
    `(${QUOTE}[\\w-]*(?:${NAMES})s?${QUOTE}\\s*[:=]\\s*${QUOTE})(?:[^\\s"',;&}\\\\]|\\\\[^"'])+`,
    "gi",
  ),
  // The forms in which well-known services hand out keys.
  /()\b(?:(?:sk|pk|rk|gh[a-z]|github_pat|xox[a-z]|glpat)[-_]|AKIA|AIza)[\w-]{12,}/g,
  /()\beyJ[\w-]+\.[\w-]+\.[\w-]*/g,
];

/** The values of the variables whose names say that they are secret. */
export function secretsIn(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value && SECRET_NAME.test(name) ? [value] : []));
}

/** The password in a server's address as entered by a user, which may be no valid one: as it is written and as it is. */
export function secretsInUrl(address: string): readonly string[] {
  const [, password] = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/)?[^:]*:(?!\/\/)(.+)@/i.exec(address) ?? [];
  if (password === undefined) return [];
  try {
    return [...new Set([password, decodeURIComponent(password)])];
  } catch {
    return [password];
  }
}

/** Returns a function that hides these secrets in a text, what looks like a secret, and where the user's home is. */
export function redactor(secrets: readonly string[], home: string): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= MIN_SECRET);
  // A secret may contain another one.
  known.sort((a, b) => b.length - a.length);
  const place = home.length > 1 ? spellingsOf(home) : undefined;
  return (text) => {
    const hidden = known.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
    const redacted = PATTERNS.reduce((rest, pattern) => rest.replace(pattern, `$1${HIDDEN}`), hidden);
    return place ? redacted.replace(place, "~") : redacted;
  };
}

/** Matches a path also as others write it: on Windows with another drive letter or slashes, or in JSON. */
function spellingsOf(path: string): RegExp {
  const names = path.split(/[\\/]+/).map((name) => name.replace(/[.*+?^${}()|[\]]/g, "\\$&"));
  return new RegExp(names.join(String.raw`[\\/]+`), path.includes("\\") ? "gi" : "g");
}
