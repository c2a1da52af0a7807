import assert from "node:assert/strict";
import fc from "fast-check";
import { evaluate, isWithin, restrict } from "../../../src/engine/permissions.ts";
import type { PermissionRule } from "../../../src/engine/server-model.ts";

type Rules = readonly PermissionRule[];
const STRENGTH = ["deny", "ask", "allow"];
const RUNS = { numRuns: 1_000, seed: 20_261_122 };

/** How OpenCode 1.18 evaluates rules: it converts them to regular expressions, and the last match counts. */
function decide(rules: Rules, permission: string, text: string): string {
  return (
    rules.findLast((rule) => matches(rule.permission, permission) && matches(rule.pattern, text))?.action ??
    "ask"
  );
}

function matches(pattern: string, text: string): boolean {
  let source = pattern
    .replaceAll("\\", "/")
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".");
  if (source.endsWith(" .*")) source = `${source.slice(0, -3)}( .*)?`;
  return new RegExp(`^${source}$`, "s").test(text.replaceAll("\\", "/"));
}

const action = fc.constantFrom<PermissionRule["action"]>("deny", "ask", "allow");
const glob = fc
  .array(fc.constantFrom("a", "b", " ", "*", "?", "/", "\\"), { maxLength: 5 })
  .map((symbols) => symbols.join(""));
const somePattern = fc.oneof(fc.constantFrom("*", "a *", "*.env", "a/*"), glob);
const rules = fc.array(
  fc.record({
    permission: fc.oneof(fc.constantFrom("*", "bash", "edit"), somePattern),
    pattern: somePattern,
    action,
  }),
  { maxLength: 8 },
);
const text = fc.oneof(
  fc.constantFrom("a b", "a", "x.env", "a/x.env"),
  fc.array(fc.constantFrom("a", "b", " ", "/"), { maxLength: 5 }).map((symbols) => symbols.join("")),
);
const name = fc.oneof(fc.constantFrom("bash", "edit"), text);

const allow = (permission: string, pattern = "*"): PermissionRule => ({
  permission,
  pattern,
  action: "allow",
});
const ask = (permission: string, pattern = "*"): PermissionRule => ({ permission, pattern, action: "ask" });
const deny = (permission: string, pattern = "*"): PermissionRule => ({ permission, pattern, action: "deny" });

/** The default rules of every agent in OpenCode. */
const DEFAULTS: Rules = [
  allow("*"),
  ask("doom_loop"),
  ask("external_directory"),
  allow("external_directory", "/tmp/opencode/*"),
  deny("question"),
  allow("read"),
  ask("read", "*.env"),
  ask("read", "*.env.*"),
  allow("read", "*.env.example"),
];

describe("Limits of permissions", () => {
  it("[PRM-1] rules with a limit allow no more than the rules and the limit, for any request", () => {
    fc.assert(
      fc.property(rules, rules, fc.array(fc.tuple(name, text), { minLength: 20 }), (limit, own, asked) => {
        const limited = [...own, ...restrict(limit, own)];
        for (const [permission, what] of asked) {
          const most = [decide(limit, permission, what), decide(own, permission, what)];
          const least = Math.min(...most.map((one) => STRENGTH.indexOf(one)));
          assert.ok(STRENGTH.indexOf(decide(limited, permission, what)) <= least, `${permission} ${what}`);
        }
      }),
      RUNS,
    );
  });

  it("limited rules are within the limit, and are not limited again", () => {
    fc.assert(
      fc.property(rules, rules, (limit, own) => {
        const limited = [...own, ...restrict(limit, own)];
        assert.ok(isWithin(limit, limited));
        assert.deepEqual(restrict(limit, limited), []);
      }),
      RUNS,
    );
  });

  it("rules that count as within a limit allow nothing that the limit doesn't", () => {
    fc.assert(
      fc.property(rules, rules, fc.array(fc.tuple(name, text), { minLength: 20 }), (limit, own, asked) => {
        fc.pre(isWithin(limit, own));
        for (const [permission, what] of asked)
          assert.ok(
            STRENGTH.indexOf(decide(own, permission, what)) <=
              STRENGTH.indexOf(decide(limit, permission, what)),
          );
      }),
      RUNS,
    );
  });

  it("a rule is evaluated as OpenCode does", () => {
    fc.assert(
      fc.property(rules, name, text, (own, permission, what) => {
        assert.equal(evaluate(own, permission, what), decide(own, permission, what));
      }),
      RUNS,
    );
  });

  it("equal rules need no limit", () => {
    assert.deepEqual(restrict(DEFAULTS, DEFAULTS), []);
    assert.deepEqual(restrict([...DEFAULTS, allow("question")], [...DEFAULTS, deny("todowrite")]), []);
  });

  it("exceptions of a limit apply only as far as the rules allow them", () => {
    const limit = [...DEFAULTS, deny("edit"), allow("edit", "plans/*"), ask("bash"), allow("bash", "git *")];
    const own = [...DEFAULTS, deny("bash", "git push *")];
    const limited = [...own, ...restrict(limit, own)];
    const expected = {
      edit: { "src/a.ts": "deny", "plans/a.md": "allow" },
      bash: { ls: "ask", "git status": "allow", git: "allow", "git push": "deny", "git push -f": "deny" },
      read: { "a.ts": "allow", ".env": "ask", ".env.example": "allow" },
      external_directory: { "/etc/*": "ask", "/tmp/opencode/*": "allow" },
      webfetch: { "https://example.com": "allow" },
    };
    for (const [permission, cases] of Object.entries(expected))
      for (const [what, action] of Object.entries(cases))
        assert.equal(decide(limited, permission, what), action, `${permission} ${what}`);
  });

  it("if the limit denies a tool entirely, its last rule denies it", () => {
    const added = restrict([...DEFAULTS, deny("bash")], [...DEFAULTS, ask("bash"), allow("bash", "git *")]);
    assert.deepEqual(
      added.findLast(({ permission }) => permission === "bash"),
      deny("bash"),
    );
  });
});
