import { ConnectionError } from "../engine/connection.ts";
import { textOf } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { NEWER_RUNS, UPDATE } from "./failures.ts";

/** The daemon's socket accepts connections but does not respond. Its process may be suspended. */
export class Silence extends Error {
  override readonly name = "Silence";

  constructor() {
    super("The daemon does not answer.");
  }
}

const SEE_LOG = sentence("See the log for details.");

export function notStarted(problem: Text): ConnectionError {
  return new ConnectionError({
    code: "daemon-failed",
    message: sentence("The background process of Async Agents didn't start: {0}.", problem),
    remedy: SEE_LOG,
  });
}

export function outdated(): ConnectionError {
  return new ConnectionError({
    code: "outdated",
    message: NEWER_RUNS,
    remedy: UPDATE,
  });
}

/** Wraps any other error, such as of the file system, in a {@link ConnectionError}. */
export function notReached(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return new ConnectionError({
    code: "daemon-failed",
    message: sentence("Can't use the background process of Async Agents: {0}", textOf(error)),
    remedy: SEE_LOG,
  });
}
