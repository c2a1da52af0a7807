import assert from "node:assert/strict";
import { UserFacingError } from "../../../src/engine/errors.ts";
import type { BringBackPlan, BroughtBack, PlannedFile } from "../../../src/engine/bring-back.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { ServerFailure, type Worktrees } from "../../../src/engine/ports.ts";
import { NO_ISOLATION } from "../../../src/engine/settings.ts";
import { shortID, type Isolation, type Task } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow, storedRecord } from "../../support/memory-window.ts";
import { noWorktrees } from "../../support/no-worktrees.ts";

const CHANGES = {
  files: [{ path: "a.ts", kind: "added", added: 1, removed: 0 }],
  ref: "refs/result",
} as const;

describe("Isolated tasks", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let byDefault: Isolation;
  let notifyParent: boolean;
  /** The names of the worktrees that are there. */
  let there: Set<string>;
  let made: string[];
  let calls: string[];
  let worktrees: Worktrees;
  let opened = 0;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    byDefault = "worktree";
    notifyParent = true;
    there = new Set();
    made = [];
    calls = [];
    const note =
      (call: string) =>
      async ({ name }: { readonly name: string }): Promise<void> =>
        void calls.push(`${call} ${name}`);
    worktrees = {
      ...noWorktrees,
      obstacle: async () => undefined,
      make: async ({ name, from }) => {
        made.push(from ? `${name} from ${from.name}` : name);
        there.add(name);
        return { name, directory: `/trees/${name}`, base: "base" };
      },
      claim: note("claim"),
      removeUnused: note("removeUnused"),
      exists: async ({ name }) => there.has(name),
      changes: async () => CHANGES,
      remove: async ({ name }) => {
        calls.push(`remove ${name}`);
        there.delete(name);
      },
      remake: async ({ name }, { discarded }) => {
        calls.push(`remake ${name}${discarded === undefined ? "" : ` from ${discarded}`}`);
        there.add(name);
      },
      discard: async ({ name }) => {
        calls.push(`discard ${name}`);
        there.delete(name);
        return "refs/discarded";
      },
      createBranch: async ({ name }, branch) =>
        void calls.push(`branch ${branch.name} of ${name}: ${branch.message}`),
      planBringBack: async () => plan("a.ts"),
      isAsPlanned: async () => true,
      bringBack: async () => done,
      undoBringBack: async () => void calls.push("undo"),
    };
    await open();
  });

  afterEach(() => window.kill());

  const done: BroughtBack = { before: [], after: [], texts: {} };
  const plan = (...paths: readonly string[]): BringBackPlan => {
    const files = paths.map((path) => ({ path, kind: "modified" }) as Partial<PlannedFile> as PlannedFile);
    return { files } as Partial<BringBackPlan> as BringBackPlan;
  };

  async function open(): Promise<void> {
    const isolation = {
      ...NO_ISOLATION,
      get default() {
        return byDefault;
      },
    };
    window = await openWindow(server, clock, { maxDepth: 4, notifyParent, isolation }, ++opened, undefined, {
      ...worktrees,
    });
    await settled();
  }

  const launch = (input: Partial<LaunchInput> = {}): Promise<Task> =>
    window.engine.launch({
      ...{ prompt: "Work.", parentSessionID: parent, launchedBy: "person", description: "Fix it" },
      ...input,
    });

  async function completed(input: Partial<LaunchInput> = {}): Promise<Task> {
    const { id } = await launch(input);
    await settled();
    server.finish(id, "Done.");
    await settled();
    return task(id);
  }

  function task(id: string): Task {
    const found = window.engine.get(id);
    assert.ok(found);
    return found;
  }

  const work = () => window.engine.worktreeWork;
  const nameOf = ({ worktree }: Task): string => worktree?.name ?? "";

  /** Replaces a function of the worktrees, also for windows that are open. */
  async function change(changed: Partial<Worktrees>): Promise<void> {
    window.kill();
    Object.assign(worktrees, changed);
    await open();
  }

  describe("get their place", () => {
    it("as the setting says, or as is asked for", async () => {
      const isolated = await launch();
      assert.match(nameOf(isolated), /^fix-it/);
      assert.equal((await server.session(isolated.id))?.directory, `/trees/${nameOf(isolated)}`);
      assert.deepEqual(calls, [`claim ${nameOf(isolated)}`]);
      assert.equal((await launch({ isolation: "folder" })).worktree, undefined);
      byDefault = "folder";
      assert.equal((await launch()).worktree, undefined);
      const other = await launch({ isolation: "worktree" });
      assert.deepEqual(
        window.engine.worktrees.directories(),
        [isolated, other].map((one) => `/trees/${nameOf(one)}`),
      );
    });

    it("where their parent works, unless they get one of their own, which begins with its state", async () => {
      const above = await launch();
      const below = await launch({ parentSessionID: above.id });
      assert.equal(below.worktree, undefined);
      assert.equal(window.engine.worktrees.of(below.id)?.name, nameOf(above));
      assert.equal((await server.session(below.id))?.directory, `/trees/${nameOf(above)}`);
      assert.equal(work().directoryOf(below.id), `/trees/${nameOf(above)}`);
      assert.equal(work().directoryOf(parent), undefined);
      const own = await launch({ parentSessionID: below.id, isolation: "worktree" });
      assert.deepEqual(made.at(-1), `${nameOf(own)} from ${nameOf(above)}`);
    });

    it("like the isolated task that they are a fork of", async () => {
      byDefault = "folder";
      const source = await completed({ isolation: "worktree" });
      const fork = await launch({ fork: { sourceSessionID: source.id } });
      assert.deepEqual(made.at(-1), `${nameOf(fork)} from ${nameOf(source)}`);
      const other = await completed();
      assert.equal((await launch({ fork: { sourceSessionID: other.id } })).worktree, undefined);
    });

    it("like their parent if they are a fork of what works there, or in the folder", async () => {
      const above = await completed();
      for (const sourceSessionID of [above.id, parent]) {
        const fork = await launch({ parentSessionID: above.id, fork: { sourceSessionID } });
        assert.equal(fork.worktree, undefined);
        assert.equal((await server.session(fork.id))?.directory, `/trees/${nameOf(above)}`);
      }
    });

    it("and have their conversation copied only where its source works", async () => {
      server.canWriteHistory = async () => false;
      const copies = async (input: Partial<LaunchInput>): Promise<number> => {
        const before = server.journal.length;
        await launch(input);
        return server.journal.slice(before).filter(({ call }) => call === "copySession").length;
      };
      const source = await completed();
      const fork = { sourceSessionID: source.id };
      assert.equal(await copies({ fork }), 0);
      assert.equal(await copies({ fork, isolation: "folder" }), 0);
      assert.equal(await copies({ fork, parentSessionID: source.id }), 1);
      assert.equal(await copies({ fork, parentSessionID: source.id, isolation: "worktree" }), 0);
    });

    it("which begins with the state of another only if that can be", async () => {
      const asked: unknown[] = [];
      await change({
        obstacle: async (place) => {
          asked.push([place.from?.name, place.location]);
          return place.from && "It can't be read.";
        },
      });
      const above = await launch();
      await assert.rejects(launch({ parentSessionID: above.id, isolation: "worktree" }), {
        code: "no-worktree",
        message: "It can't be read.",
      });
      const { location } = NO_ISOLATION;
      assert.deepEqual(asked, [
        [undefined, location],
        [nameOf(above), location],
      ]);
    });

    it("or are refused if none can be made, or the one of their parent is gone", async () => {
      const above = await launch();
      there.clear();
      await assert.rejects(launch({ parentSessionID: above.id }), {
        code: "worktree-gone",
        message: `The worktree ${nameOf(above)} no longer exists. Make it again, or launch a new task instead.`,
      });
      await change({ obstacle: async () => "There is no repository." });
      await assert.rejects(launch(), { code: "no-worktree", message: "There is no repository." });
      await launch({ isolation: "folder" });
      const why = "Git isn't allowed to read a.db.";
      await change({ obstacle: async () => undefined, make: () => Promise.reject(new UserFacingError(why)) });
      await assert.rejects(launch(), { code: "no-worktree", message: why });
    });

    it("which is removed again if they can't be created", async () => {
      const { createSession } = server;
      const refused = new ServerFailure("POST", "refused", "No.", 400);
      server.createSession = async () => Promise.reject(refused);
      await assert.rejects(launch(), refused);
      server.createSession = createSession;
      const [name] = made;
      assert.deepEqual(calls, [`removeUnused ${name}`]);
      const { prompt } = server;
      server.prompt = async () => Promise.reject(refused);
      await assert.rejects(launch(), refused);
      await settled();
      assert.deepEqual(calls.slice(1), [`claim ${made[1]}`, `removeUnused ${made[1]}`]);
      server.prompt = prompt;
    });

    it("though its worktree couldn't be claimed or removed, which is logged", async () => {
      const fail = async (): Promise<never> => Promise.reject(new Error("Disk full."));
      await change({ claim: fail, removeUnused: fail });
      await launch();
      assert.match(window.log.join("\n"), /^Couldn't claim the worktree .*: Disk full\.$/m);
      server.createSession = fail;
      await assert.rejects(launch(), /Disk full/);
      assert.match(window.log.join("\n"), /^Couldn't remove the worktree .*: Disk full\.$/m);
    });
  });

  describe("whose work", () => {
    it("is read once when they end, and given with their result", async () => {
      let reads = 0;
      await change({
        changes: async () => {
          reads++;
          return CHANGES;
        },
      });
      const { id } = await completed();
      assert.deepEqual((await window.engine.output(id)).changes, CHANGES);
      assert.deepEqual((await window.engine.output(id)).changes, CHANGES);
      assert.equal(reads, 1);
      assert.deepEqual(await work().changes(id), CHANGES);
      assert.equal(reads, 2);
      const other = await completed({ isolation: "folder" });
      assert.equal((await window.engine.output(other.id)).changes, undefined);
      await assert.rejects(work().changes(other.id), {
        code: "no-worktree",
        message: `Task ${shortID(other.id)} has no worktree of its own.`,
      });
    });

    it("is read once when they end even if nobody is notified, but not at a connect", async () => {
      let reads = 0;
      notifyParent = false;
      await change({
        changes: async () => {
          reads++;
          return CHANGES;
        },
      });
      const { id } = await completed();
      assert.equal(reads, 1);
      await change({});
      assert.equal(reads, 1);
      assert.deepEqual((await window.engine.output(id)).changes, CHANGES);
      assert.equal(reads, 2);
    });

    it("can't be read is tried again by the next who asks", async () => {
      let fails = true;
      await change({
        changes: async () => (fails ? Promise.reject(new Error("Locked.")) : CHANGES),
      });
      const { id } = await completed();
      assert.equal((await window.engine.output(id)).changes, undefined);
      assert.match(window.log.join("\n"), /^Couldn't read the changes of task \S+: Locked\.$/m);
      fails = false;
      assert.deepEqual((await window.engine.output(id)).changes, CHANGES);
    });

    it("is brought back, after which the worktree is removed", async () => {
      const ended = await completed();
      const planned = await work().plan(ended.id, {});
      await work().bringBack(ended.id, planned, [{ path: "a.ts", take: "agents" }], []);
      assert.equal(task(ended.id).worktree?.outcome, "broughtBack");
      assert.equal(calls.at(-1), `remove ${nameOf(ended)}`);
      await work().undoBringBack(ended.id, done);
      assert.deepEqual(calls.slice(-2), ["undo", `remake ${nameOf(ended)}`]);
      assert.equal(task(ended.id).worktree?.outcome, undefined);
    });

    it("goes from the folder again when it is undone, though its session was deleted meanwhile", async () => {
      const ended = await completed();
      await work().bringBack(ended.id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
      await server.deleteSession(ended.id);
      await settled();
      await work().undoBringBack(ended.id, done);
      assert.equal(calls.at(-1), "undo");
    });

    it("keeps its worktree if everything is read again while that is made again", async () => {
      let finish = (): void => assert.fail("nothing is made again");
      const { remake } = worktrees;
      await change({
        remake: async (worktree, how) => {
          await remake(worktree, how);
          await new Promise<void>((resolve) => (finish = resolve));
        },
      });
      const ended = await completed();
      await work().bringBack(ended.id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
      const undone = work().undoBringBack(ended.id, done);
      await settled();
      await window.engine.connect();
      await settled();
      finish();
      await undone;
      await settled();
      assert.ok(there.has(nameOf(ended)));
      assert.equal(task(ended.id).worktree?.outcome, undefined);
    });

    it("keeps its worktree unless all of it was decided on, some of it taken, and nothing done since", async () => {
      const ended = await completed();
      const both = plan("a.ts", "b.ts");
      const take = (path: string, whose: "agents" | "mine") => ({ path, take: whose });
      await work().bringBack(ended.id, both, [take("a.ts", "agents")], []);
      await work().bringBack(ended.id, both, [take("a.ts", "mine"), take("b.ts", "mine")], []);
      const running = await launch();
      await work().bringBack(running.id, plan("a.ts"), [take("a.ts", "agents")], []);
      await change({ isAsPlanned: async () => false });
      await work().bringBack(ended.id, plan("a.ts"), [take("a.ts", "agents")], []);
      assert.deepEqual(
        [task(ended.id).worktree?.outcome, task(running.id).worktree?.outcome],
        [undefined, undefined],
      );
      assert.ok(there.has(nameOf(ended)) && there.has(nameOf(running)));
    });

    it("is brought back whole, whosever version of each file was taken", async () => {
      const ended = await completed();
      await work().bringBack(
        ended.id,
        plan("a.ts", "b.ts"),
        [
          { path: "a.ts", take: "agents" },
          { path: "b.ts", take: "mine" },
        ],
        [],
      );
      assert.equal(task(ended.id).worktree?.outcome, "broughtBack");
    });

    it("stays if more of it appears while it is brought back, and the server keeps it if that was before", async () => {
      const ended = await completed();
      const answers = [false, true, false];
      await change({ isAsPlanned: async () => answers.shift() ?? true });
      const released = (): number => server.journal.filter(({ call }) => call === "releaseDirectory").length;
      for (const expected of [0, 1]) {
        await work().bringBack(ended.id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
        assert.equal(released(), expected);
        assert.equal(task(ended.id).worktree?.outcome, undefined);
        assert.ok(there.has(nameOf(ended)));
      }
    });

    it("is removed at the next connect if the server was gone while it was brought back, but not after a refusal", async () => {
      const { releaseDirectory } = server;
      const bringBack = async (id: string, reason: "unreachable" | "refused"): Promise<void> => {
        server.releaseDirectory = () => Promise.reject(new ServerFailure("POST", reason, "Not now."));
        await work().bringBack(id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
        server.releaseDirectory = releaseDirectory;
        assert.ok(window.log.includes(`Couldn't remove the worktree of task ${shortID(id)}: Not now.`));
        assert.ok(there.has(nameOf(task(id))));
      };
      const gone = await completed();
      await bringBack(gone.id, "unreachable");
      assert.equal(task(gone.id).worktree?.outcome, "broughtBack");
      const refused = await completed();
      await bringBack(refused.id, "refused");
      assert.equal(task(refused.id).worktree?.outcome, undefined);
      await change({});
      assert.deepEqual([...there], [nameOf(refused)]);
    });

    it("is made a branch with the description as its message", async () => {
      const ended = await completed();
      await work().createBranch(ended.id, "fix");
      assert.deepEqual(calls.slice(-2), [
        `branch fix of ${nameOf(ended)}: Fix it`,
        `remove ${nameOf(ended)}`,
      ]);
      assert.equal(task(ended.id).worktree?.outcome, "branched");
      const running = await launch();
      await work().createBranch(running.id, "other");
      assert.ok(there.has(nameOf(running)));
      assert.deepEqual(window.log, []);
    });

    it("is discarded, and comes back", async () => {
      const ended = await completed();
      const ref = await work().discard(ended.id);
      assert.equal(ref, "refs/discarded");
      assert.equal(task(ended.id).worktree?.outcome, "discarded");
      await assert.rejects(window.engine.resume(ended.id, "More."), { code: "worktree-gone" });
      await work().undoDiscard(ended.id, ref);
      assert.equal(calls.at(-1), `remake ${nameOf(ended)} from refs/discarded`);
      assert.equal(task(ended.id).worktree?.outcome, undefined);
      await window.engine.resume(ended.id, "More.");
    });

    it("doesn't come back over a worktree that was made again meanwhile", async () => {
      const ended = await completed();
      const ref = await work().discard(ended.id);
      await work().remake(ended.id);
      await assert.rejects(work().undoDiscard(ended.id, ref), {
        code: "wrong-status",
        message: /exists again, so what was discarded wasn't restored over it\.$/,
      });
      assert.equal(calls.at(-1), `remake ${nameOf(ended)}`);
    });

    it("stays where it is while anything works there", async () => {
      const running = await launch();
      const refusal = {
        code: "still-running",
        message: `Task ${shortID(running.id)} or a subtask is still working in the worktree. Cancel it first.`,
      };
      await assert.rejects(work().discard(running.id), refusal);
      await assert.rejects(work().remove(running.id), refusal);
      const below = await launch({ parentSessionID: running.id });
      server.finish(running.id, "Done.");
      await settled();
      await assert.rejects(work().remove(running.id), refusal);
      server.finish(below.id, "Done.");
      await settled();
      const child = await server.createSession({ title: "Look", parentID: running.id, agent: "general" });
      await server.prompt(child.id, { messageID: "msg_child", agent: "general", parts: [{ text: "Look." }] });
      await assert.rejects(work().remove(running.id), refusal);
      server.finish(child.id, "Done.");
      await settled();
      const { isWorkingIn } = server;
      server.isWorkingIn = async () => true;
      await assert.rejects(work().remove(running.id), refusal);
      server.isWorkingIn = isWorkingIn;
      await work().remove(running.id);
      assert.ok(!there.has(nameOf(running)));
    });

    it("is made again only if it is gone, and nothing is written if it wasn't decided on", async () => {
      const ended = await completed();
      const written = (): number => server.journal.filter(({ call }) => call === "saveRecord").length;
      const before = written();
      calls = [];
      await work().remake(ended.id);
      assert.deepEqual(calls, []);
      await work().remove(ended.id);
      await work().remake(ended.id);
      assert.deepEqual(calls, [`remove ${nameOf(ended)}`, `remake ${nameOf(ended)}`]);
      assert.equal(written(), before);
    });

    it("can be decided on again once a subtask's notice has woken its task, if it is there", async () => {
      const { remove } = worktrees;
      const { prompt } = server;
      for (const isGone of [false, true]) {
        const above = await launch();
        const below = await launch({
          parentSessionID: above.id,
          launchedBy: "agent",
          isolation: "worktree",
        });
        await clock.advance(1_000);
        server.finish(above.id, "I wait.");
        await settled();
        await change({ remove: async () => undefined });
        await work().createBranch(above.id, "fix");
        assert.equal(task(above.id).worktree?.outcome, "branched");
        server.prompt = (id, sent) => {
          if (isGone) there.delete(nameOf(above));
          return prompt.call(server, id, sent);
        };
        server.finish(below.id, "Found it.");
        await settled();
        server.prompt = prompt;
        assert.equal(task(above.id).status, "resumed");
        assert.equal(task(above.id).worktree?.outcome, isGone ? "branched" : undefined);
        assert.equal(nameOf(task(above.id)), nameOf(above));
        server.finish(above.id, "It is in the cart.");
        await change({ remove });
      }
    });

    it("is no place to tell of a subtask once it is gone", async () => {
      const above = await completed();
      const below = await launch({
        ...{ parentSessionID: above.id, launchedBy: "agent", isolation: "worktree" },
      });
      await work().remove(above.id);
      server.finish(below.id, "Found it.");
      await settled();
      assert.deepEqual(task(below.id).notice, {
        state: "skipped",
        reason: "The worktree of the parent session no longer exists.",
      });
    });

    it("keeps its session from being deleted until it was decided on", async () => {
      const above = await completed({ isolation: "folder" });
      const ended = await completed({ parentSessionID: above.id });
      for (const id of [above.id, ended.id])
        await assert.rejects(window.engine.clear(id, { deleteSession: true }), {
          code: "has-worktree",
          message: `Task ${shortID(ended.id)} has a worktree. Discard it first.`,
        });
      await work().discard(ended.id);
      await window.engine.clear(above.id, { deleteSession: true });
      assert.equal(window.engine.get(ended.id), undefined);
    });

    it("was removed by the user keeps nothing from being deleted", async () => {
      const ended = await completed();
      await change({ exists: async () => false });
      await window.engine.clear(ended.id, { deleteSession: true });
      assert.equal(window.engine.get(ended.id), undefined);
    });

    it("was decided on is completed at the next connect, if this process or Git failed meanwhile", async () => {
      const brought = await completed();
      const remove = worktrees.remove;
      await change({ remove: async () => Promise.reject(new Error("Locked.")) });
      await work().bringBack(brought.id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
      assert.match(window.log.join("\n"), /^Couldn't remove the worktree of task \S+: Locked\.$/m);
      assert.ok(there.has(nameOf(brought)));
      await change({});
      const failure = `Couldn't remove the worktree of task ${shortID(brought.id)}: Locked.`;
      assert.ok(window.log.includes(failure), window.log.join("\n"));
      assert.ok(there.has(nameOf(brought)));
      await change({ remove });
      assert.ok(!there.has(nameOf(brought)));
      assert.equal(task(brought.id).worktree?.outcome, "broughtBack");
      const discarded = await completed();
      await work().discard(discarded.id);
      // It was made again before that could be noted.
      there.add(nameOf(discarded));
      await change({});
      assert.equal(task(discarded.id).worktree?.outcome, undefined);
    });

    it("was discarded but is there again is shown as not decided on, even if that can't be stored yet", async () => {
      const ended = await completed();
      await work().discard(ended.id);
      there.add(nameOf(ended));
      const { saveRecord } = server;
      server.saveRecord = () => Promise.reject(new ServerFailure("PATCH", "unreachable", "Gone away."));
      await change({});
      server.saveRecord = saveRecord;
      assert.deepEqual(
        window.log.filter((line) => line.includes("worktree")),
        [`Couldn't store what became of the worktree of ${shortID(ended.id)}: Gone away.`],
      );
      assert.equal(task(ended.id).worktree?.outcome, undefined);
      window.engine.disconnect();
      await window.engine.connect();
      await settled();
      assert.equal((await storedRecord(server, ended.id)).worktree?.outcome, undefined);
    });

    it("has its base written only if Git knows another one, and not without a repository", async () => {
      const ended = await completed();
      const written = (): number => server.journal.filter(({ call }) => call === "saveRecord").length;
      const before = written();
      await change({ takeUp: async (all) => new Map(all.map(({ name, base }) => [name, base])) });
      await change({ takeUp: () => Promise.reject(new Error("No repository.")) });
      assert.equal(written(), before);
      assert.equal(task(ended.id).worktree?.base, "base");
      assert.deepEqual(window.log, []);
    });

    it("gets the base that Git knows, after a process was killed while the folder's state was taken in", async () => {
      const ended = await completed();
      await change({ takeUp: async (all) => new Map(all.map(({ name }) => [name, "newer"])) });
      assert.equal(task(ended.id).worktree?.base, "newer");
    });

    it("is listed with its task, and can be cleaned up with or without one", async () => {
      const ended = await completed();
      const listed = { name: nameOf(ended) } as Awaited<ReturnType<Worktrees["list"]>>[number];
      await change({ list: async () => [listed, { ...listed, name: "strange" }] });
      const [own, strange] = await work().list();
      assert.deepEqual(own?.task, { id: ended.id, description: "Fix it", isRunning: false });
      assert.equal(strange?.task, undefined);
      await work().cleanUp(nameOf(ended));
      await work().cleanUp("strange");
      assert.deepEqual(calls.slice(-2), [`remove ${nameOf(ended)}`, "remove strange"]);
    });

    it("whose folder was restored, but whose worktree can't be made again, says so", async () => {
      const ended = await completed();
      await work().bringBack(ended.id, plan("a.ts"), [{ path: "a.ts", take: "agents" }], []);
      await change({ remake: async () => Promise.reject(new Error("Disk full.")) });
      await assert.rejects(work().undoBringBack(ended.id, done), {
        code: "partly-done",
        message: "The folder was restored, but the task's worktree couldn't be made again. Disk full.",
      });
      assert.equal(task(ended.id).worktree?.outcome, undefined);
    });
  });
});
