import type { TombstoneStore } from "../../src/engine/ports.ts";

/** What a window remembers beyond its end, in memory. */
export function remembered(): TombstoneStore {
  let tombstones: ReturnType<TombstoneStore["load"]> = [];
  let unsettled: ReturnType<TombstoneStore["loadUnsettled"]> = [];
  return {
    load: () => tombstones,
    save: (next) => void (tombstones = structuredClone(next)),
    loadUnsettled: () => unsettled,
    saveUnsettled: (next) => void (unsettled = structuredClone(next)),
  };
}
