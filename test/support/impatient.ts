import type { AgentServer } from "../../src/engine/ports.ts";
import { realClock, type EngineWindowOptions } from "./engine.ts";
import { replacing } from "./mortal-server.ts";

/** More milliseconds than a window gives a server to store or answer a prompt whose sender is gone. */
const LEFT_BEHIND_MS = 15_000;

/**
 * For a window that finds prompts without their senders: between two of its looks at the running sessions, the time
 * passes after which it gives such a prompt up, until it begins a turn itself.
 */
export function impatient(): Required<Pick<EngineWindowOptions, "between" | "clock">> {
  let passed = 0;
  let isPrompting = false;
  const looking = (real: AgentServer): AgentServer =>
    replacing(real, "statuses", () => {
      if (!isPrompting) passed += LEFT_BEHIND_MS;
      return real.statuses();
    });
  const prompting = (real: AgentServer): AgentServer =>
    replacing(real, "prompt", (sessionID, prompt) => {
      if (!prompt.noReply) isPrompting = true;
      return real.prompt(sessionID, prompt);
    });
  return {
    clock: { ...realClock, now: () => Date.now() + passed },
    between: (real) => looking(prompting(real)),
  };
}
