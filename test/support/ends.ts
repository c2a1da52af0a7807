import "./noon.ts";
import { until } from "./wait.ts";

/** How long what the tests opened may take to close after the last one, in milliseconds. */
const limit = 10_000;

/**
 * For `mocha --require`: what tests leave open is a failure. A process that Mocha keeps for further files
 * (`--parallel`) compares; any other has to end by itself.
 */
export const mochaHooks =
  process.env["MOCHA_WORKER_ID"] === undefined
    ? { afterAll: endOverdue }
    : { beforeAll: remember, afterAll: compare };

function endOverdue(): void {
  const overdue = (): void => {
    console.error(`The tests left something open: ${process.getActiveResourcesInfo().join(", ")}`);
    // On exit, Mocha sets the code by the tests alone; this listener runs later.
    process.once("exit", () => (process.exitCode = 1));
    process.exit();
  };
  // Unreferenced, so that it runs only if something else keeps the process alive.
  setTimeout(overdue, limit).unref();
}

let before: readonly string[] = [];

/** The kinds of what is open. Sockets are left out: one that nobody reads from keeps no process alive. */
function open(): readonly string[] {
  return process.getActiveResourcesInfo().filter((kind) => kind !== "TCPSocketWrap" && kind !== "PipeWrap");
}

function remember(): void {
  before = open();
}

async function compare(this: Mocha.Context): Promise<void> {
  this.timeout(2 * limit);
  const left = (): readonly string[] => {
    // Mocha limits the hook with a timer.
    const known = [...before, "Timeout"];
    return open().filter((kind) => {
      const at = known.indexOf(kind);
      if (at >= 0) known.splice(at, 1);
      return at < 0;
    });
  };
  try {
    await until("everything to be closed", () => left().length === 0, limit);
  } catch {
    throw new Error(`The tests left something open: ${left().join(", ")}`);
  }
}
