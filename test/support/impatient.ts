import { realClock, type EngineWindowOptions } from "./engine.ts";
import { replacing } from "./mortal-server.ts";

/** More milliseconds than a window gives a server to store or answer a prompt whose sender is gone. */
const LEFT_BEHIND_MS = 15_000;

/**
 * For a window that finds prompts without their senders, and nothing else at work: between two of its looks at the
 * running sessions, the time passes after which it gives such a prompt up.
 */
export function impatient(): Required<Pick<EngineWindowOptions, "between" | "clock">> {
  let passed = 0;
  return {
    clock: { ...realClock, now: () => Date.now() + passed },
    between: (real) =>
      replacing(real, "statuses", () => {
        passed += LEFT_BEHIND_MS;
        return real.statuses();
      }),
  };
}
