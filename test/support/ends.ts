/** How long a test process may take to end after its last test, in milliseconds. */
const limit = 10_000;

/** For `mocha --require`: ends a process that is kept alive by something left open, and makes that a failure. */
export const mochaHooks = {
  afterAll(): void {
    const overdue = (): void => {
      console.error(`The tests left something open: ${process.getActiveResourcesInfo().join(", ")}`);
      // On exit, Mocha sets the code by the tests alone; this listener runs later.
      process.once("exit", () => (process.exitCode = 1));
      process.exit();
    };
    // Unreferenced, so that it runs only if something else keeps the process alive.
    setTimeout(overdue, limit).unref();
  },
};
