/*
 * What a window and the daemon's program agree on: the program reads its configuration from its standard input, as one
 * JSON object, and writes one line to its standard output once it listens.
 */

export interface DaemonConfig {
  /** Of this user alone. */
  readonly stateFolder: string;
  /** The extension's. */
  readonly version: string;
}

export const LISTENING = "listening";
/** Its exit code where another daemon serves this user already. */
export const EXIT_ALREADY_SERVED = 17;
