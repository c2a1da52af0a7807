import { freshID, type Random } from "./ids.ts";
import type { Clock } from "./ports.ts";
import type { TaskRegistry } from "./registry.ts";
import { isActive, type TaskRecord } from "./task.ts";

/** The prefix of generated batch IDs. */
const GENERATED = "bat";

/** The place of a launch in a batch while its task is being created. */
export interface BatchPlace {
  readonly id: string;
  leave(): void;
}

/**
 * Determines the batch of a new task: the given one; otherwise, for an agent's launch, the unnamed batch in which this
 * agent still has active tasks. A task that a user launches gets its own batch.
 */
export class BatchIDs {
  /** Launches in progress, by parent, whose tasks are not in the registry yet. */
  private readonly entering = new Map<string, { readonly id: string; launches: number }>();

  constructor(
    private readonly registry: TaskRegistry,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  enter(
    parentSessionID: string,
    given: string | undefined,
    launchedBy: TaskRecord["launchedBy"],
  ): BatchPlace {
    const wanted = given?.trim() || (launchedBy === "person" ? this.fresh() : "");
    if (wanted !== "") return { id: wanted, leave: () => undefined };
    const entering = this.entering.get(parentSessionID) ?? { id: this.current(parentSessionID), launches: 0 };
    entering.launches++;
    this.entering.set(parentSessionID, entering);
    return {
      id: entering.id,
      leave: () => {
        if (--entering.launches === 0) this.entering.delete(parentSessionID);
      },
    };
  }

  private current(parentSessionID: string): string {
    const newest = this.registry
      .tasksOf(parentSessionID)
      .map(({ record }) => record)
      .filter(({ launchedBy, batchID }) => launchedBy === "agent" && isGenerated(batchID))
      .filter((record) => isActive(record) && record.clearedAt === undefined)
      .sort((a, b) => a.createdAt - b.createdAt)
      .at(-1);
    return newest?.batchID ?? this.fresh();
  }

  private fresh(): string {
    return freshID(GENERATED, this.clock.now(), this.random);
  }
}

/** Tasks are only added to generated batches: in a named batch they would be cancelled and cleared with it. */
export function isGenerated(batchID: string): boolean {
  return new RegExp(`^${GENERATED}_[0-9a-f]{12}[0-9A-Za-z]{14}$`).test(batchID);
}
