import assert from "node:assert/strict";
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import type { BringBackPlan } from "../../../src/engine/bring-back.ts";
import { planBringBack } from "../../../src/git/bring-back.ts";
import { makeWorktree } from "../../../src/git/make-worktree.ts";
import { changesOf } from "../../../src/git/plan-contents.ts";
import { writeBack } from "../../../src/git/write-back.ts";
import { ARepository, filesOf, gitIn, writeFiles } from "./a-repository.ts";

/** How one side leaves a file: three places in its text, far apart, or all of a binary one. */
interface State {
  readonly places: readonly number[];
  readonly isExecutable: boolean;
}

/** A file in the base, in the folder and in the worktree; undefined where there is none. */
interface File {
  readonly name: string;
  readonly isBinary: boolean;
  readonly isCrlf: boolean;
  readonly base: State | undefined;
  readonly mine: State | undefined;
  readonly agents: State | undefined;
  readonly isStaged: boolean;
  /** What the user chooses if the sides conflict. */
  readonly choice: "mine" | "agents";
}

const state = fc.option(
  fc.record({
    places: fc.array(fc.constantFrom(0, 0, 1, 2), { minLength: 3, maxLength: 3 }),
    isExecutable: fc.boolean(),
  }),
  { nil: undefined, freq: 4 },
);
const file: fc.Arbitrary<Omit<File, "name">> = fc.record({
  isBinary: fc.boolean(),
  isCrlf: fc.boolean(),
  base: state,
  mine: state,
  agents: state,
  isStaged: fc.boolean(),
  choice: fc.constantFrom("mine", "agents"),
});

/** Names of special characters; no name is a part of another. */
const NAMES = ["a.txt", "b/ü b.txt", "b/c/-c.txt", '"d".txt'];

/** Cases that are merged at once, each in a folder of its own, because Git takes most of the time to start. */
const AT_ONCE = 20;
const cases: fc.Arbitrary<readonly File[]> = fc
  .array(fc.array(file, { minLength: 1, maxLength: NAMES.length }), {
    minLength: AT_ONCE,
    maxLength: AT_ONCE,
  })
  .map((all) =>
    all.flatMap((files, at) => files.map((one, index) => ({ ...one, name: `${at}/${NAMES[index]}` }))),
  );

function render({ name, isBinary, isCrlf }: File, { places }: State): Buffer {
  if (isBinary) return Buffer.from([0, ...Buffer.from(name), ...places]);
  const between = [..."12345678"].map((line) => `${name} ${line}\n`).join("");
  const text = places.map((place, index) => `${name} place ${index} is ${place}\n`).join(between);
  return Buffer.from(isCrlf ? text.replaceAll("\n", "\r\n") : text);
}

function write(root: string, files: readonly File[], side: "base" | "mine" | "agents"): void {
  for (let at = 0; at < AT_ONCE; at++) rmSync(join(root, String(at)), { recursive: true, force: true });
  for (const one of files) {
    const { name, [side]: wanted } = one;
    if (!wanted) continue;
    writeFiles(root, { [name]: render(one, wanted) });
    chmodSync(join(root, name), wanted.isExecutable ? 0o755 : 0o644);
  }
}

/** The one that differs from the base; undefined if both do, each in its own way. */
function either<T>(base: T, mine: T, agents: T): { readonly value: T } | undefined {
  const same = (a: T, b: T): boolean => JSON.stringify(a) === JSON.stringify(b);
  if (same(mine, agents) || same(agents, base)) return { value: mine };
  return same(mine, base) ? { value: agents } : undefined;
}

/** The simple oracle: place by place, and mode by mode; undefined if the sides conflict. */
function merged({ isBinary, base, mine, agents }: File): { readonly value: State | undefined } | undefined {
  const whole = either(base, mine, agents);
  if (whole || !base || !mine || !agents) return whole;
  const mode = either(base.isExecutable, mine.isExecutable, agents.isExecutable);
  const groups = isBinary ? [[0, 1, 2]] : [[0], [1], [2]];
  const places = groups.map((group) => {
    const of = (one: State): number[] => group.map((index) => one.places[index] ?? 0);
    return either(of(base), of(mine), of(agents));
  });
  if (!mode || places.some((place) => !place)) return undefined;
  return { value: { isExecutable: mode.value, places: places.flatMap((place) => place?.value ?? []) } };
}

function expectedFiles(files: readonly File[]): Record<string, string> {
  return Object.fromEntries(
    files
      .flatMap((one) => {
        const wanted = (merged(one) ?? { value: one[one.choice] }).value;
        if (!wanted) return [];
        const mode = wanted.isExecutable ? 755 : 644;
        return [[one.name, `${mode} ${render(one, wanted).toString("latin1")}`] as const];
      })
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function conflicting(files: readonly File[]): string[] {
  return files.flatMap((one) => (merged(one) ? [] : [one.name])).sort();
}

async function bringBack(plan: BringBackPlan, files: readonly File[]): Promise<void> {
  const all = await Promise.all(
    plan.files.map((one) => {
      const { choice } = files.find(({ name }) => name === one.path) ?? { choice: "mine" };
      return changesOf(plan, one, one.conflict ? choice : "merged");
    }),
  );
  await writeBack(plan, new Map(all.flatMap((changes) => [...changes])));
}

describe("Bringing back, in 200 generated cases", function () {
  this.timeout(600_000);

  it("does what a simple merge does, and changes neither the index nor anything else", async () => {
    const repository = new ARepository("core.autocrlf=false").commit({ "kept.txt": "kept\n" });
    const { root: worktree } = await makeWorktree({ directory: repository.root, name: "work", from: "head" });
    let [clean, conflicts] = [0, 0];
    await fc.assert(
      fc.asyncProperty(cases, async (files) => {
        write(repository.root, files, "base");
        repository.git("add", "-A");
        repository.git("commit", "-q", "--allow-empty", "-m", "Base");
        const base = repository.git("rev-parse", "HEAD").trim();
        gitIn(worktree, "checkout", "-qf", "--detach", base);
        write(worktree, files, "agents");
        write(repository.root, files, "mine");
        const staged = files.filter(({ isStaged, base: before, mine }) => isStaged && (before ?? mine));
        if (staged.length > 0) repository.git("add", "-A", "--", ...staged.map(({ name }) => name));
        const before = repository.state();
        const plan = await planBringBack({ folder: repository.root, worktree, base });
        assert.deepEqual(repository.state(), before);
        const inConflict = plan.files.filter(({ conflict }) => conflict).map(({ path }) => path);
        assert.deepEqual(inConflict, conflicting(files));
        await bringBack(plan, files);
        const expected = { ...expectedFiles(files), "kept.txt": "644 kept\n" };
        assert.deepEqual(filesOf(repository.root), expected);
        const index = (state: object): object => ({ ...state, status: undefined, files: undefined });
        assert.deepEqual(index(repository.state()), index(before));
        conflicts += inConflict.length;
        clean += plan.files.length - inConflict.length;
      }),
      { numRuns: 200 / AT_ONCE, seed: 20_261_123, endOnFailure: true },
    );
    assert.ok(clean > 50 && conflicts > 50, `${clean} clean, ${conflicts} in conflict`);
  });
});
