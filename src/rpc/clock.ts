import type { Clock } from "../engine/ports.ts";

/** The system clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return { dispose: () => clearTimeout(timer) };
  },
};
