import {
  isForUser,
  type BringBackPlan,
  type BroughtBack,
  type Conflict,
  type FileChoice,
  type ListedWorktree,
} from "./bring-back.ts";
import { messageOf, Refusal, textOf } from "./errors.ts";
import { ServerFailure, type EnginePorts, type WorktreeChanges } from "./ports.ts";
import type { Predictions } from "./predictions.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Resume } from "./resume.ts";
import { sentence } from "./sentence.ts";
import { isActive, shortID, type Task, type TaskWorktree } from "./task.ts";
import type { Remake, TaskWorktrees } from "./task-worktrees.ts";

interface WorktreeWorkParts extends Pick<EnginePorts, "logger"> {
  readonly git: EnginePorts["worktrees"];
  readonly registry: TaskRegistry;
  readonly worktrees: TaskWorktrees;
  readonly resume: Resume;
  readonly predictions: Predictions;
}

/** What users do with an isolated task's worktree, and with the work in it: bring it back, make a branch of it, discard it. */
export class WorktreeWork {
  constructor(private readonly parts: WorktreeWorkParts) {}

  /**
   * What bringing the work back would change in the folder. Nothing changes yet.
   * @param unsaved the texts of editors that are not saved, by path below the folder
   */
  async plan(taskID: string, unsaved: Readonly<Record<string, string>>): Promise<BringBackPlan> {
    const worktree = await this.present(this.find(taskID));
    return this.parts.git.planBringBack(worktree, new Map(Object.entries(unsaved)));
  }

  /** The directory of the worktree that a session works in. Undefined if it works in the folder. */
  directoryOf(sessionID: string): string | undefined {
    return this.parts.worktrees.of(sessionID)?.directory;
  }

  /**
   * Writes chosen files of the plan to the folder. Once that was decided for all of them, the worktree of an ended task is
   * removed, unless the user kept their own version of each.
   * @param unsaved the paths whose texts are left to the editor
   */
  async bringBack(
    taskID: string,
    plan: BringBackPlan,
    choices: readonly FileChoice[],
    unsaved: readonly string[],
  ): Promise<BroughtBack> {
    const entry = this.find(taskID);
    const done = await this.parts.git.bringBack(plan, choices, unsaved);
    const isDecided = plan.files.every(({ path }) => choices.some((one) => one.path === path));
    const isAnythingTaken = choices.some(({ take }) => take !== "mine");
    // What was done since the plan was made is not in the folder.
    if (!isActive(entry.record) && isDecided && isAnythingTaken)
      await this.close(entry, "broughtBack", (worktree) => this.parts.git.isAsPlanned(worktree, plan));
    return done;
  }

  async undoBringBack(taskID: string, done: Omit<BroughtBack, "texts">): Promise<void> {
    const { git, worktrees, registry } = this.parts;
    await git.undoBringBack(done);
    const entry = registry.entry(taskID);
    // Its session was deleted, and the work with it; what was in the folder is back.
    if (!entry) return;
    try {
      await this.makeAgain(entry);
    } catch (error) {
      // The work is no longer in the folder, with or without its worktree.
      await worktrees.note(entry, { outcome: undefined });
      throw new Refusal(
        "partly-done",
        (await worktrees.isGoneFor(taskID))
          ? sentence(
              "The folder was restored, but the task's worktree couldn't be made again. {0}",
              textOf(error),
            )
          : sentence(
              "The folder was restored, but the task's worktree couldn't be set up again. {0}",
              textOf(error),
            ),
      );
    }
  }

  /** Brings the folder's state into the worktree, and has the agent resolve the conflicts. */
  async letAgentMerge(taskID: string, plan: BringBackPlan): Promise<Task> {
    const { git, worktrees, resume } = this.parts;
    const entry = this.find(taskID);
    await this.present(entry);
    const conflicts = plan.files.filter(({ conflict }) => conflict !== undefined);
    if (conflicts.every(isForUser))
      throw new Refusal(
        "invalid-argument",
        sentence("None of the files in conflict can be merged as text. Choose whose version to use instead."),
      );
    resume.requireResumable(entry);
    await worktrees.released(entry, async (worktree) =>
      worktrees.noteNow(entry, { base: await git.takeIn(worktree, plan) }),
    );
    try {
      return await resume.run(entry.record.id, mergePrompt(plan));
    } catch (error) {
      throw new Refusal(
        "partly-done",
        sentence(
          "The folder's changes were merged into the worktree, but the agent couldn't be asked to resolve the conflicts. {0}",
          textOf(error),
        ),
      );
    }
  }

  async createBranch(taskID: string, name: string): Promise<void> {
    const entry = this.find(taskID);
    const worktree = await this.present(entry);
    await this.parts.git.createBranch(worktree, { name, message: entry.record.description });
    if (!isActive(entry.record)) await this.close(entry, "branched", () => Promise.resolve(true));
  }

  /** Resolves to the Git ref under which the work is kept for 30 days. */
  async discard(taskID: string): Promise<string> {
    const { git, worktrees } = this.parts;
    const entry = this.find(taskID);
    await this.present(entry);
    return worktrees.released(entry, async (worktree) => {
      const ref = await git.discard(worktree);
      await worktrees.noteNow(entry, { outcome: "discarded" });
      return ref;
    });
  }

  async undoDiscard(taskID: string, ref: string): Promise<void> {
    await this.makeAgain(this.find(taskID), { discarded: ref });
  }

  /** What the task has changed so far. */
  async changes(taskID: string): Promise<WorktreeChanges> {
    return this.parts.worktrees.changes(this.find(taskID));
  }

  /** See {@link TaskWorktrees.remove}. */
  async remove(taskID: string): Promise<void> {
    await this.parts.worktrees.remove(this.find(taskID));
  }

  /** See {@link TaskWorktrees.remake}. */
  async remake(taskID: string, signal?: AbortSignal): Promise<void> {
    await this.makeAgain(this.find(taskID), { signal });
  }

  /** See {@link TaskWorktrees.setupOutput}. */
  async setupOutput(taskID: string): Promise<string | undefined> {
    return this.parts.worktrees.setupOutput(this.find(taskID));
  }

  /** See {@link Predictions.predictAll}. */
  async predictConflicts(): Promise<void> {
    this.parts.predictions.predictAll();
  }

  /** See {@link Predictions.predictSoon}. */
  folderChanged(): void {
    this.parts.predictions.predictSoon();
  }

  /** See {@link Predictions.userChanged}. */
  userChanged(directory: string): void {
    this.parts.predictions.userChanged(directory);
  }

  async list(): Promise<readonly ListedWorktree[]> {
    return (await this.parts.git.list()).map((one) => {
      const record = this.owner(one.name)?.record;
      if (!record) return one;
      const { id, description } = record;
      return { ...one, task: { id, description, isRunning: isActive(record) } };
    });
  }

  /** Removes a listed worktree. Its state is kept under a Git ref. */
  async cleanUp(name: string): Promise<void> {
    const entry = this.owner(name);
    await (entry ? this.parts.worktrees.remove(entry) : this.parts.git.remove({ name }));
  }

  /**
   * Throws a {@link Refusal} if a task or one of its descendants has a worktree whose work was not decided on. One that is
   * gone was removed by the user.
   */
  async requireNone(taskID: string): Promise<void> {
    const { registry, git } = this.parts;
    for (const id of [taskID, ...registry.descendantsOf(taskID).map((session) => session.id)]) {
      const worktree = registry.entry(id)?.record.worktree;
      if (worktree && worktree.outcome === undefined && (await git.exists(worktree)))
        throw new Refusal(
          "has-worktree",
          sentence("Task {0} has a worktree. Discard it first.", shortID(id)),
        );
    }
  }

  private find(taskID: string): Entry {
    return this.parts.registry.find(taskID);
  }

  /** See {@link TaskWorktrees.takeUp}. Then also goes on to set up worktrees that were made again. */
  async takeUp(): Promise<void> {
    const { registry, worktrees } = this.parts;
    await worktrees.takeUp();
    const halfSetUp = registry.all().filter(({ record }) => record.worktree?.setup === "again");
    await Promise.all(halfSetUp.map((entry) => this.goOnSettingUp(entry)));
  }

  /** Never rejects. Nobody waits for the setup, so what waits for the worktree is sent however it ends. */
  private async goOnSettingUp(entry: Entry): Promise<void> {
    const { worktrees, logger } = this.parts;
    const { id } = entry.record;
    try {
      // Whoever removed it since will be asked whether to make it again.
      if (await worktrees.isGoneFor(id)) return;
      await worktrees.remake(entry);
    } catch (error) {
      logger.warn(`Couldn't set up the worktree of task ${shortID(id)} again: ${messageOf(error)}`);
    }
    await this.sendWaiting(entry);
  }

  /** Makes the worktree again, and sends the messages that waited for it. */
  private async makeAgain(entry: Entry, how?: Remake): Promise<void> {
    await this.parts.worktrees.remake(entry, how);
    await this.sendWaiting(entry);
  }

  private async sendWaiting(entry: Entry): Promise<void> {
    const { registry, worktrees, resume } = this.parts;
    const inIt = registry.all().filter(({ record }) => worktrees.ownerOf(record.id) === entry);
    await Promise.all(inIt.map((one) => resume.sendWaiting(one)));
  }

  private owner(name: string): Entry | undefined {
    return this.parts.registry.all().find(({ record }) => record.worktree?.name === name);
  }

  private async present(entry: Entry): Promise<TaskWorktree> {
    const { worktrees } = this.parts;
    const worktree = worktrees.requireOwn(entry);
    await worktrees.requireFor(entry.record.id);
    return worktree;
  }

  /**
   * Notes what became of the work and removes the worktree, which is no longer needed, unless something is running in it.
   * @param isAllOfIt whether that concerned all the work that is there now. If not, nothing happens.
   */
  private async close(
    entry: Entry,
    outcome: TaskWorktree["outcome"],
    isAllOfIt: (worktree: TaskWorktree) => Promise<boolean>,
  ): Promise<void> {
    const { git, worktrees, predictions, logger } = this.parts;
    try {
      // Once it is released, the server is asked for it no more.
      if (!(await isAllOfIt(worktrees.requireOwn(entry)))) return;
      await worktrees.released(entry, async (worktree) => {
        if (!(await isAllOfIt(worktree))) return;
        await worktrees.noteNow(entry, { outcome });
        await git.remove(worktree);
      });
    } catch (error) {
      logger.warn(`Couldn't remove the worktree of task ${shortID(entry.record.id)}: ${messageOf(error)}`);
      // The next connect removes it.
      if (error instanceof ServerFailure && error.reason === "unreachable")
        await worktrees.note(entry, { outcome });
    }
    predictions.predictSoon();
  }
}

const CONFLICT_TO_AGENT: Readonly<Record<Conflict, string>> = {
  content: "both sides changed the same part",
  "both-added": "both sides created it",
  "deleted-by-you": "the user deleted it, you changed it",
  "deleted-by-agent": "you deleted it, the user changed it",
  kind: "each side made a different kind of file of it",
};

function mergePrompt({ files }: BringBackPlan): string {
  const conflicts = files.flatMap((file) =>
    file.conflict && !isForUser(file) ? [`- ${file.path} (${CONFLICT_TO_AGENT[file.conflict]})`] : [],
  );
  const left = files.filter(isForUser).map(({ path }) => `- ${path}`);
  return [
    "While you worked, the user changed the folder that your worktree was made from. Its present state has been merged into your worktree, but these files are in conflict:",
    conflicts.join("\n"),
    'Where both sides changed the same lines, the file contains conflict markers: the side "Your changes" is the user\'s, the side "Changes by the agent" is yours. Resolve every conflict so that both intentions are kept, remove all markers, and check that the result works. Then say how you resolved each one.',
    ...(left.length === 0
      ? []
      : [
          "These files are in conflict, too, but can't be merged as text. They are still as you left them; leave them so, as the user will decide on them:",
          left.join("\n"),
        ]),
  ].join("\n\n");
}
