/** Values by a key that several of them share, each group in the order in which its values were added. */
export class Groups<K, V> {
  private readonly groups = new Map<K, Set<V>>();

  of(key: K): Iterable<V> {
    return this.groups.get(key) ?? [];
  }

  add(key: K, value: V): void {
    const group = this.groups.get(key);
    if (group) group.add(value);
    else this.groups.set(key, new Set([value]));
  }

  delete(key: K, value: V): void {
    const group = this.groups.get(key);
    group?.delete(value);
    if (group?.size === 0) this.groups.delete(key);
  }
}
