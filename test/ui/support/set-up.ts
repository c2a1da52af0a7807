import { openWindow, type EngineWindow } from "../../support/engine.ts";
import {
  hermeticEnv,
  hermeticHome,
  modelConfig,
  openCodeBinary,
  startOpenCode,
  type OpenCodeOptions,
  type OpenCodeServer,
} from "../../support/opencode.ts";
import {
  startScriptedModel,
  type ScriptedModel,
  type ScriptedModelOptions,
} from "../../support/scripted-model.ts";
import { systemTheme } from "./pictures.ts";
import { startWorkbench, type Workbench, type WorkbenchOptions } from "./workbench.ts";

export interface WindowOptions extends WorkbenchOptions {
  /** The window works with this server, in the server's folder. */
  readonly server?: OpenCodeServer;
  /** Without a server: the window starts its own, which knows this model. */
  readonly model?: ScriptedModel;
  /** Where that server keeps its data; a new one (see `hermeticHome`) if left out. */
  readonly home?: string;
  /** What to wait for in the view of the tasks, by default that there are none yet; null leaves the view closed. */
  readonly shows?: ((workbench: Workbench) => Promise<unknown>) | null;
}

/** Starts what a group of tests shares; all of it is stopped after the last of them, the latest first. */
export interface Start {
  model(options?: ScriptedModelOptions): Promise<ScriptedModel>;
  /** A server that asks for no password. */
  server(options: OpenCodeOptions): Promise<OpenCodeServer>;
  /** An engine beside the window's, to launch what the window is to show. */
  launcher(server: OpenCodeServer): Promise<EngineWindow>;
  /** Opens a window, and in it the view of the tasks. Its theme is the system's, which is dark. */
  window(options: WindowOptions): Promise<Workbench>;
}

/**
 * Sets up what the tests of the `describe` around it share. Each test finds the servers running and the window tidy,
 * whatever the one before it left (see `Workbench.tidy`), and one that fails leaves a picture.
 */
export function setUp(prepare: (start: Start) => Promise<void>): void {
  const stops: (() => Promise<void> | void)[] = [];
  const servers: OpenCodeServer[] = [];
  let workbench: Workbench | undefined;

  const start: Start = {
    async model(options) {
      const model = await startScriptedModel(options);
      stops.push(() => model.stop());
      return model;
    },
    async server(options) {
      const server = await startOpenCode({ password: null, ...options });
      servers.push(server);
      stops.push(() => server.stop());
      return server;
    },
    async launcher(server) {
      const launcher = await openWindow(server, { notifyParent: false }, undefined, undefined, "follows");
      stops.push(() => launcher.dispose());
      return launcher;
    },
    async window({ server, model, home = hermeticHome(), shows = hasNoTasks, ...options }) {
      const opened = await startWorkbench({
        env: hermeticEnv(home, model && modelConfig(model)),
        ...(server && { folder: server.directory }),
        ...options,
        settings: {
          ...systemTheme,
          ...(server && { "asyncagents.server.url": server.url }),
          ...(model && { "asyncagents.server.path": openCodeBinary() }),
          ...options.settings,
        },
      });
      stops.push(() => opened.stop());
      workbench = opened;
      if (shows) {
        await opened.openView();
        await shows(opened);
      }
      return opened;
    },
  };

  before(async function () {
    this.timeout(240_000);
    await prepare(start);
  });

  beforeEach(async () => {
    for (const server of servers) if (!runs(server)) await server.restart();
    await workbench?.tidy();
  });

  afterEach(async function () {
    await workbench?.recordFailure(this.currentTest);
  });

  after(async () => {
    for (const stop of stops.reverse()) await stop();
  });
}

async function hasNoTasks({ page }: Workbench): Promise<void> {
  await page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor({ timeout: 60_000 });
}

function runs({ pid }: OpenCodeServer): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
