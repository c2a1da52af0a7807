import { systemClock } from "../rpc/clock.ts";
import { PROTOCOL_VERSION } from "../rpc/contract.ts";
import { notReached, Silence } from "../rpc/daemon-failures.ts";
import { isOlder, reachDaemon } from "../rpc/reach-daemon.ts";
import { DaemonFiles } from "../rpc/daemon-files.ts";
import { readProgram } from "../rpc/recorded-program.ts";
import { WireClosed } from "../rpc/wire-closed.ts";
import { mayBeLiving } from "../state/processes.ts";

const VERSIONS_DIFFER =
  "its version and that of the plugin in this OpenCode server don't fit together. Restart this OpenCode server.";

interface Reopening {
  readonly onlyIfUsed: boolean;
  /** The folder's. Defaults to that of this process. */
  readonly environment?: Readonly<NodeJS.ProcessEnv>;
  readonly clock?: typeof systemClock;
}

/**
 * Has the daemon open a folder that no window has open. Starts the daemon if none is running. Resolves to false if no
 * recorded program is available, so that none was asked. Rejects with a `ConnectionError`, also if the daemon falls silent.
 * @param directory the folder's real path
 */
export async function reopenFolder(
  stateFolder: string,
  directory: string,
  { onlyIfUsed, environment = process.env, clock = systemClock }: Reopening,
): Promise<boolean> {
  const ask = async (): Promise<boolean> => {
    const program = await readProgram(stateFolder);
    if (!program) return false;
    await requireFitting(stateFolder, program.version);
    let isSilent = false;
    const link = await reachDaemon(
      { ...program, stateFolder, env: { ...process.env, OPENCODE_SERVER_PASSWORD: undefined }, clock },
      {
        hear: () => undefined,
        // Opening a folder may take minutes, but a daemon that works on it answers in between.
        onAnswer: (silent) => {
          if (!silent) return;
          isSilent = true;
          link.close();
        },
      },
    );
    const env = Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    try {
      await link.request("reopen", [{ directory, env, onlyIfUsed }]);
      return true;
    } catch (error) {
      throw isSilent ? new Silence() : error;
    } finally {
      link.close();
    }
  };
  try {
    return await ask().catch((error: unknown) => {
      // A daemon that is ending closes the connection without an answer.
      if (error instanceof WireClosed) return ask();
      throw error;
    });
  } catch (error) {
    throw notReached(error);
  }
}

/**
 * Rejects if the running daemon has another protocol, unless the recorded program may be a newer one: other than a window,
 * the plugin may be newer than that program, which would then replace a daemon of its own version again and again.
 */
async function requireFitting(stateFolder: string, recorded: string): Promise<void> {
  const entry = await new DaemonFiles(stateFolder).read();
  if (!entry || entry.protocol === PROTOCOL_VERSION || !(await mayBeLiving(entry))) return;
  if (entry.protocol > PROTOCOL_VERSION || !isOlder(entry.version, recorded))
    throw new Error(VERSIONS_DIFFER);
}
