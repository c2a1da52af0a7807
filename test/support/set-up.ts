import { openWindow, type EngineWindow } from "./engine.ts";
import { startOpenCode, type OpenCodeOptions, type OpenCodeServer } from "./opencode.ts";
import { startScriptedModel, type ScriptedModel, type ScriptedModelOptions } from "./scripted-model.ts";

/** Starts what a group of tests shares; everything is stopped after the last test, in reverse order. */
export interface Start {
  model(options?: ScriptedModelOptions): Promise<ScriptedModel>;
  server(options?: OpenCodeOptions): Promise<OpenCodeServer>;
  readonly engine: typeof openWindow;
  /** Stops something else along with the others. */
  stop(stop: () => Promise<void> | void): void;
}

/**
 * Sets up what the tests of the enclosing `describe` share. Servers are running when a test begins, whatever the
 * previous test did to them.
 * @returns a function that opens an engine, which is closed after the current test
 */
export function setUp(prepare: (start: Start) => Promise<void>): typeof openWindow {
  const stops: (() => Promise<void> | void)[] = [];
  const servers: OpenCodeServer[] = [];
  const opened: EngineWindow[] = [];

  before(async function () {
    this.timeout(600_000);
    await prepare({
      async model(options) {
        const model = await startScriptedModel(options);
        stops.push(() => model.stop());
        return model;
      },
      async server(options) {
        const server = await startOpenCode(options);
        servers.push(server);
        stops.push(() => server.stop());
        return server;
      },
      async engine(...args) {
        const window = await openWindow(...args);
        stops.push(() => window.dispose());
        return window;
      },
      stop: (stop) => void stops.push(stop),
    });
  });

  beforeEach(async () => {
    for (const server of servers) if (!runs(server)) await server.restart();
  });

  afterEach(() => {
    for (const window of opened.splice(0)) window.dispose();
  });

  after(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  return async (...args) => {
    const window = await openWindow(...args);
    opened.push(window);
    return window;
  };
}

function runs({ pid }: OpenCodeServer): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
