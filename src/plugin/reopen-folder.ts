import { systemClock } from "../rpc/clock.ts";
import { notReached } from "../rpc/daemon-failures.ts";
import { reachDaemon } from "../rpc/reach-daemon.ts";
import { readProgram } from "../rpc/recorded-program.ts";

/**
 * Has the daemon open a folder that no window has open, after starting the daemon where none runs and there is something
 * to start it with. Rejects with a `ConnectionError`.
 * @param directory real path
 */
export async function reopenFolder(
  stateFolder: string,
  directory: string,
  { whatWasUsed }: { readonly whatWasUsed: boolean },
): Promise<void> {
  try {
    const program = await readProgram(stateFolder);
    if (!program) return;
    const link = await reachDaemon(
      {
        ...program,
        stateFolder,
        env: { ...process.env, OPENCODE_SERVER_PASSWORD: undefined },
        clock: systemClock,
      },
      { hear: () => undefined, onAnswer: () => undefined },
    );
    const env = Object.fromEntries(
      Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    await link.request("reopen", [{ directory, env, whatWasUsed }]).finally(() => link.close());
  } catch (error) {
    throw notReached(error);
  }
}
