import type { PermissionRule } from "./server-model.ts";

/*
 * Permission rules as OpenCode reads them: of those whose permission and pattern match what a tool is about to do, the
 * last one counts, and where none does the user is asked. An agent's rules come first, its session's after them. In
 * names and patterns `*` stands for any text, `?` for one character, and a final ` *` for nothing as well.
 */

type Rules = readonly PermissionRule[];
type Action = PermissionRule["action"];

const RANK: Readonly<Record<Action, number>> = { deny: 0, ask: 1, allow: 2 };
const ALLOW: PermissionRule = { permission: "*", pattern: "*", action: "allow" };
const ASK: PermissionRule = { permission: "*", pattern: "*", action: "ask" };

export function evaluate(rules: Rules, permission: string, pattern: string): Action {
  const counts = rules.findLast(
    (rule) => covers(rule.permission, permission) && covers(rule.pattern, pattern),
  );
  return (counts ?? ASK).action;
}

/** Whether nothing is allowed by `rules` that `limit` asks for or denies, nor asked for that it denies. May say no where it is. */
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

/** What follows `rules` so that together they are within `limit`, and otherwise stay as they are where that can be said in rules. */
export function restrict(limit: Rules, rules: Rules): Rules {
  if (isWithin(limit, rules)) return [];
  const given = effective(rules);
  const added = effective(limit)
    // The rules in force themselves.
    .filter(({ permission, pattern, action }) => permission + pattern !== "**" || action !== "allow")
    .flatMap((rule) => {
      const others = given.filter((other) => overlap(rule, other));
      const regions = others.map((other) => ({ region: meet(rule, other), action: other.action }));
      // Where two patterns overlap and neither includes the other, all of the limit's gets the lower action.
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

/** What the limit denies and the rules deny too, each as the limit says it. */
export function sharedDenials(limit: Rules, rules: Rules): Rules {
  return effective(limit).filter(
    (rule, index, all) =>
      rule.action === "deny" &&
      !all.slice(index + 1).some((later) => includes(later, rule)) &&
      isWithin([ALLOW, rule], rules),
  );
}

/** Without those that never count: all before the last one that matches everything. */
function effective(rules: Rules): Rules {
  const all = [ASK, ...rules];
  return all.slice(all.findLastIndex(({ permission, pattern }) => permission === "*" && pattern === "*"));
}

/** Without rules that a later one makes void, and those that say again what counts already. */
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

/** What both match. Undefined: nothing, or no single rule says it. */
function meet(one: Region, other: Region): Region | undefined {
  const permission = narrower(one.permission, other.permission);
  const pattern = narrower(one.pattern, other.pattern);
  return permission === undefined || pattern === undefined ? undefined : { permission, pattern };
}

function narrower(one: string, other: string): string | undefined {
  if (covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

/** Whether all that `inner`, a pattern or a plain text, matches is matched by `outer`. May say no where it is. */
function covers(outer: string, inner: string): boolean {
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

/** Whether there is a text that both match; on Windows upper and lower case are the same to OpenCode. */
function overlaps(one: string, other: string): boolean {
  return forms(one.toLowerCase()).some((a) => forms(other.toLowerCase()).some((b) => formsOverlap(a, b)));
}

function formsOverlap(one: string, other: string): boolean {
  // `row[j]`: whether the rest of `one` from here and that of `other` from j on have a text in common.
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

/** A pattern as one or two in which `*` and `?` have no other meaning than their own. */
function forms(pattern: string): readonly string[] {
  const plain = pattern.replaceAll("\\", "/");
  return plain.endsWith(" *") ? [plain.slice(0, -2), plain] : [plain];
}
