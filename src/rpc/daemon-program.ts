/*
 * The interface of the daemon's program: it reads its configuration from standard input, as one JSON object, and writes
 * one line to standard output once it listens.
 */

export interface DaemonConfig {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  /** The version of the extension. */
  readonly version: string;
}

export const LISTENING = "listening";
/** The exit code if another daemon already serves this user. */
export const EXIT_ALREADY_SERVED = 17;
