import { MultiMap } from "./multi-map.ts";

/** Values with IDs and parents. */
export interface Family<T> {
  get(id: string): T | undefined;
  all(): readonly T[];
  /** The direct children. */
  childrenOf(parentID: string): readonly T[];
}

/** A family whose values are kept and forgotten by its owner, in the order in which they were added. */
export class Tree<T extends { readonly id: string }> implements Family<T> {
  private readonly values = new Map<string, T>();
  /** The IDs of the children, by parent ID. */
  private readonly children = new MultiMap<string, string>();

  /** @param parentOf the ID of a value's parent, if it has one */
  constructor(private readonly parentOf: (value: T) => string | undefined) {}

  get(id: string): T | undefined {
    return this.values.get(id);
  }

  all(): readonly T[] {
    return [...this.values.values()];
  }

  childrenOf(parentID: string): readonly T[] {
    return [...this.children.of(parentID)].flatMap((id) => this.values.get(id) ?? []);
  }

  keep(value: T): void {
    const { id } = value;
    const known = this.values.get(id);
    const [before, after] = [known && this.parentOf(known), this.parentOf(value)];
    if (before !== after) {
      if (before !== undefined) this.children.delete(before, id);
      if (after !== undefined) this.children.add(after, id);
    }
    this.values.set(id, value);
  }

  forget(id: string): void {
    const known = this.values.get(id);
    const parentID = known && this.parentOf(known);
    if (parentID !== undefined) this.children.delete(parentID, id);
    this.values.delete(id);
  }
}

/** All descendants of a session, nearest first. */
export function descendants<T extends { readonly id: string }>(
  sessionID: string,
  childrenOf: (id: string) => readonly T[],
): readonly T[] {
  // A map, because broken metadata can make a session its own ancestor.
  const found = new Map(childrenOf(sessionID).map((one) => [one.id, one]));
  for (const id of found.keys())
    for (const one of childrenOf(id)) if (!found.has(one.id)) found.set(one.id, one);
  found.delete(sessionID);
  return [...found.values()];
}
