import type { TaskMemoryStore } from "../../src/engine/ports.ts";

/** An in-memory store for what outlives a window. */
export function remembered(): TaskMemoryStore {
  let tombstones: ReturnType<TaskMemoryStore["load"]> = [];
  let unsettled: ReturnType<TaskMemoryStore["loadUnsettled"]> = [];
  return {
    load: () => tombstones,
    save: (next) => void (tombstones = structuredClone(next)),
    loadUnsettled: () => unsettled,
    saveUnsettled: (next) => void (unsettled = structuredClone(next)),
  };
}
