import type { Worktrees } from "../../src/engine/ports.ts";

/** For engines that make no worktrees. */
export const noWorktrees: Worktrees = {
  obstacle: async () => "There are no worktrees here.",
  make: refuse,
  claim: refuse,
  removeUnused: refuse,
  takeUp: async () => new Map(),
  setUp: refuse,
  setupOutput: async () => undefined,
  exists: async () => false,
  changes: refuse,
  remove: refuse,
  remake: refuse,
  planBringBack: refuse,
  isAsPlanned: refuse,
  bringBack: refuse,
  undoBringBack: refuse,
  takeIn: refuse,
  createBranch: refuse,
  discard: refuse,
  predict: async () => new Map(),
  list: async () => [],
};

function refuse(): Promise<never> {
  return Promise.reject(new Error("There are no worktrees here."));
}
