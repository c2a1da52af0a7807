/** Milliseconds that a test process may take to end after its last test. */
const limit = 10_000;

/** For `mocha --require`: ends a process that something left open would keep alive, and makes that a failure. */
export const mochaHooks = {
  afterAll(): void {
    const overdue = (): void => {
      console.error(`The tests left something open: ${process.getActiveResourcesInfo().join(", ")}`);
      // Mocha sets the code at the exit, by the tests alone; this comes after it.
      process.once("exit", () => (process.exitCode = 1));
      process.exit();
    };
    // It keeps nothing alive itself, so it runs only where something else does.
    setTimeout(overdue, limit).unref();
  },
};
