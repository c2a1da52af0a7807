import { systemClock } from "../rpc/clock.ts";
import { notReached } from "../rpc/daemon-failures.ts";
import { reachDaemon } from "../rpc/reach-daemon.ts";
import { readProgram } from "../rpc/recorded-program.ts";

/**
 * Has the daemon open a folder that no window has open, after starting the daemon where none runs. Resolves to what
 * prevented it; an empty text where nothing did, or where there is nothing to start it with.
 * @param directory real path
 */
export async function reopenFolder(stateFolder: string, directory: string): Promise<string> {
  const { OPENCODE_SERVER_PASSWORD: password, ...env } = process.env;
  try {
    const program = await readProgram(stateFolder);
    if (!program) return "";
    const link = await reachDaemon(
      { ...program, stateFolder, env, clock: systemClock },
      { hear: () => undefined, onAnswer: () => undefined },
    );
    // The daemon needs of this process's environment only what the server was started with.
    const needed = password === undefined ? {} : { OPENCODE_SERVER_PASSWORD: password };
    await link.request("reopen", [{ directory, env: needed }]).finally(() => link.close());
    return "";
  } catch (error) {
    return notReached(error).message;
  }
}
