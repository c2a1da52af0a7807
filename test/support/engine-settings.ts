import { NO_ISOLATION, type EngineSettings } from "../../src/engine/settings.ts";

/** What engines in tests are set to, apart from what a test is about. */
export const ENGINE_SETTINGS: EngineSettings = {
  pollInterval: 500,
  stallWarning: 0,
  notifyParent: true,
  maxDepth: 1,
  fork: { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" },
  maxConcurrentTasks: 0,
  collisions: "block",
  isolation: NO_ISOLATION,
  budget: {},
};
