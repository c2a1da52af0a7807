import { setTimeout as delay } from "node:timers/promises";

/**
 * Asks `condition` again until it gives something other than undefined, null or false, and returns that.
 * @param what completes "Waited in vain for …"
 * @throws when nothing came within `timeoutMs`; what the condition last threw is the cause
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  timeoutMs = 40_000,
): Promise<Exclude<NonNullable<T>, false>> {
  const deadline = Date.now() + timeoutMs;
  let failure: unknown;
  do {
    try {
      const value = await condition();
      failure = undefined;
      if (value !== undefined && value !== null && value !== false)
        return value as Exclude<NonNullable<T>, false>;
    } catch (error) {
      failure = error;
    }
    await delay(25);
  } while (Date.now() < deadline);
  const reason = failure instanceof Error ? `: ${failure.message}` : "";
  throw new Error(`Waited in vain for ${what} (${timeoutMs} ms)${reason}`, { cause: failure });
}
