import type { PermissionRule } from "./server-model.ts";

/*
 * Permission rules as OpenCode evaluates them: the last rule whose permission and pattern match a tool's action counts,
 * and if none matches, the user is asked. The agent's rules come first, followed by the session's. In permissions and
 * patterns, `*` stands for any text, `?` for one character, and a final ` *` also for nothing.
 */

type Rules = readonly PermissionRule[];
type Action = PermissionRule["action"];

const RANK: Readonly<Record<Action, number>> = { deny: 0, ask: 1, allow: 2 };
const ALLOW: PermissionRule = { permission: "*", pattern: "*", action: "allow" };
const WILD = /[*?]/;
/** What gives a pattern more than its own text to match. */
const SPECIAL = /[*?\\]/;
const ASK: PermissionRule = { permission: "*", pattern: "*", action: "ask" };

export function evaluate(rules: Rules, permission: string, pattern: string): Action {
  const counts = rules.findLast(
    (rule) => covers(rule.permission, permission) && covers(rule.pattern, pattern),
  );
  return (counts ?? ASK).action;
}

/**
 * Whether `rules` allow nothing that `limit` asks for or denies, and ask for nothing that `limit` denies. Conservative:
 * may return false although that is the case.
 */
export function isWithin(limit: Rules, rules: Rules): boolean {
  const [limits, given] = [effective(limit), effective(rules)];
  return limits.every((rule, i) =>
    given.every((other, j) => {
      if (RANK[other.action] <= RANK[rule.action] || !overlap(rule, other)) return true;
      const later = [...limits.slice(i + 1), ...given.slice(j + 1)];
      const shared = [rule, other, meet(rule, other)].filter((one) => one !== undefined);
      return later.some((one) => shared.some((region) => includes(one, region)));
    }),
  );
}

/** The rules to append to `rules` to keep them within `limit`, with no other effects where rules can express that. */
export function restrict(limit: Rules, rules: Rules): Rules {
  if (isWithin(limit, rules)) return [];
  const given = effective(rules);
  const added = effective(limit)
    // The default that allows everything adds no limit.
    .filter(({ permission, pattern, action }) => permission + pattern !== "**" || action !== "allow")
    .flatMap((rule) => {
      const others = given.filter((other) => overlap(rule, other));
      const regions = others.map((other) => ({ region: meet(rule, other), action: other.action }));
      // If patterns overlap without one including the other, the limit's whole pattern gets the lower action.
      const most = regions.reduce(
        (least, { region, action }) => (region ? least : lower(least, action)),
        rule.action,
      );
      return regions.flatMap(({ region, action }) =>
        region ? [{ ...region, action: lower(most, action) }] : [],
      );
    });
  return withoutSurplus(given, added);
}

/** The denials of the limit that the rules share, as the limit states them. */
export function sharedDenials(limit: Rules, rules: Rules): Rules {
  return effective(limit).filter(
    (rule, index, all) =>
      rule.action === "deny" &&
      !all.slice(index + 1).some((later) => includes(later, rule)) &&
      isWithin([ALLOW, rule], rules),
  );
}

/** Drops rules without effect: all before the last one that matches everything. */
function effective(rules: Rules): Rules {
  const all = [ASK, ...rules];
  return all.slice(all.findLastIndex(({ permission, pattern }) => permission === "*" && pattern === "*"));
}

/** Drops rules that a later rule overrides, and rules that repeat what already applies. */
function withoutSurplus(before: Rules, added: Rules): Rules {
  const kept: PermissionRule[] = [];
  for (const [index, rule] of added.entries()) {
    if (added.slice(index + 1).some((later) => includes(later, rule))) continue;
    const last = [...before, ...kept].findLast((earlier) => overlap(earlier, rule));
    if (!last || last.action !== rule.action || !includes(last, rule)) kept.push(rule);
  }
  return kept;
}

function lower(one: Action, other: Action): Action {
  return RANK[one] < RANK[other] ? one : other;
}

type Region = Pick<PermissionRule, "permission" | "pattern">;

function includes(outer: Region, inner: Region): boolean {
  return covers(outer.permission, inner.permission) && covers(outer.pattern, inner.pattern);
}

function overlap(one: Region, other: Region): boolean {
  return overlaps(one.permission, other.permission) && overlaps(one.pattern, other.pattern);
}

/** The intersection of both. Undefined if it is empty or no single rule expresses it. */
function meet(one: Region, other: Region): Region | undefined {
  const permission = narrower(one.permission, other.permission);
  const pattern = narrower(one.pattern, other.pattern);
  return permission === undefined || pattern === undefined ? undefined : { permission, pattern };
}

function narrower(one: string, other: string): string | undefined {
  if (covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

/** Whether `outer` matches all that `inner`, a pattern or text, matches. May return false although it does. */
function covers(outer: string, inner: string): boolean {
  // Most patterns match everything, or are plain text.
  if (outer === "*" || outer === inner) return true;
  if (!SPECIAL.test(outer) && !inner.includes("\\")) return false;
  return forms(inner).every((text) => forms(outer).some((pattern) => coversForm(pattern, text)));
}

function coversForm(pattern: string, text: string): boolean {
  let [at, inText, star, resume] = [0, 0, -1, 0];
  while (inText < text.length) {
    if (pattern[at] === "*") {
      [star, resume] = [at++, inText];
    } else if (pattern[at] === text[inText] || (pattern[at] === "?" && text[inText] !== "*")) {
      at++;
      inText++;
    } else if (star >= 0) {
      at = star + 1;
      inText = ++resume;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}

/** Whether some text matches both. Ignores case, as OpenCode does on Windows. */
function overlaps(one: string, other: string): boolean {
  if (one === "*" || other === "*" || one === other) return true;
  return forms(one.toLowerCase()).some((a) => forms(other.toLowerCase()).some((b) => formsOverlap(a, b)));
}

function formsOverlap(one: string, other: string): boolean {
  if (one === other || one === "*" || other === "*") return true;
  // Most patterns differ in their first character, or are plain text.
  const [first = "", second = ""] = [one[0], other[0]];
  if ((first !== second && !WILD.test(first + second)) || !WILD.test(one + other)) return false;
  // `row[j]`: whether `one` from `i` on and `other` from `j` on have a match in common.
  let row: boolean[] = [];
  for (let i = one.length; i >= 0; i--) {
    const below = row;
    row = [];
    for (let j = other.length; j >= 0; j--) {
      const [a, b] = [one[i], other[j]];
      const both = a !== undefined && b !== undefined;
      row[j] =
        (a === undefined && b === undefined) ||
        (a === "*" && ((below[j] ?? false) || (b !== undefined && (row[j + 1] ?? false)))) ||
        (b === "*" && ((row[j + 1] ?? false) || (a !== undefined && (below[j] ?? false)))) ||
        (both && (a === b || a === "?" || b === "?") && (below[j + 1] ?? false));
    }
  }
  return row[0] ?? false;
}

/** Expands a pattern into one or two in which `*` and `?` have only their usual meaning. */
function forms(pattern: string): readonly string[] {
  const plain = pattern.replaceAll("\\", "/");
  return plain.endsWith(" *") ? [plain.slice(0, -2), plain] : [plain];
}
