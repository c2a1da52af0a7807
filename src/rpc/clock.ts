import type { Clock } from "../engine/ports.ts";

/** The real time. Its timers keep no process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return { dispose: () => clearTimeout(timer) };
  },
};
