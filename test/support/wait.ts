import { setTimeout as delay } from "node:timers/promises";

/**
 * Repeats `condition` until it returns something other than undefined, null or false, and returns that.
 * @param what completes "Waited in vain for …"
 * @throws after `timeoutMs`; the cause is the last error of the condition
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
