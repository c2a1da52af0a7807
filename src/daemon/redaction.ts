const HIDDEN = "[redacted]";
/** A shorter value could be a word that has nothing to do with a secret. */
const MIN_SECRET = 6;

const SECRET_NAME = /key|token|secret|pass|auth|cred|cookie|private/i;

/** What looks like a secret wherever it is. In each, the first group is kept. */
const PATTERNS: readonly RegExp[] = [
  // The user and password in an address.
  /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/"']+(?=@)/gi,
  // The header of a request.
  /(\b(?:Basic|Bearer)\s+)[\w.~+/=-]+/gi,
  // A name and its value, as in JSON, an environment or an address.
  /(["']?[\w-]*(?:api[-_]?key|token|secret|passw(?:or)?d|credential)s?["']?\s*[:=]\s*["']?)[^\s"',;&}]+/gi,
  // The forms in which well-known services hand out keys.
  /()\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|glpat|AKIA|AIza)[-_]?[\w-]{12,}/g,
  /()\beyJ[\w-]+\.[\w-]+\.[\w-]*/g,
];

/** The values of the variables whose names say that they are secret. */
export function secretsIn(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value && SECRET_NAME.test(name) ? [value] : []));
}

/** Returns a function that hides these secrets in a text, what looks like a secret, and where the user's home is. */
export function redactor(secrets: readonly string[], home: string): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= MIN_SECRET);
  // A secret may contain another one.
  known.sort((a, b) => b.length - a.length);
  return (text) => {
    const hidden = known.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
    const redacted = PATTERNS.reduce((rest, pattern) => rest.replace(pattern, `$1${HIDDEN}`), hidden);
    return home.length > 1 ? redacted.replaceAll(home, "~") : redacted;
  };
}
