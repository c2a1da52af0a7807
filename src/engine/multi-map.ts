/** A map with several values per key, in the order in which they were added. */
export class MultiMap<K, V> {
  private readonly sets = new Map<K, Set<V>>();

  of(key: K): Iterable<V> {
    return this.sets.get(key) ?? [];
  }

  add(key: K, value: V): void {
    const set = this.sets.get(key);
    if (set) set.add(value);
    else this.sets.set(key, new Set([value]));
  }

  delete(key: K, value: V): void {
    const set = this.sets.get(key);
    set?.delete(value);
    if (set?.size === 0) this.sets.delete(key);
  }
}
