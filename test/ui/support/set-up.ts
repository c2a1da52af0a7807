import type { EngineWindow } from "../../support/engine.ts";
import {
  hermeticEnv,
  hermeticHome,
  modelConfig,
  openCodeBinary,
  type OpenCodeOptions,
  type OpenCodeServer,
} from "../../support/opencode.ts";
import type { ScriptedModel } from "../../support/scripted-model.ts";
import { setUp as setUpEngine, type Start as EngineStart } from "../../support/set-up.ts";
import { systemTheme } from "./pictures.ts";
import { startWorkbench, type Workbench, type WorkbenchOptions } from "./workbench.ts";

interface WindowOptions extends WorkbenchOptions {
  /** The window connects to this server and opens the server's folder. */
  readonly server?: OpenCodeServer;
  /** If there is no server: the window starts its own, which has this model. */
  readonly model?: ScriptedModel;
  /** The home of that server; by default a new one (see `hermeticHome`). */
  readonly home?: string;
  /** Waits for something in the view of the tasks, by default for the empty view; null leaves the view closed. */
  readonly shows?: ((workbench: Workbench) => Promise<unknown>) | null;
}

/** Like {@link EngineStart}, with a window. */
export interface Start extends EngineStart {
  /** Starts a server without a password. */
  server(options: OpenCodeOptions): Promise<OpenCodeServer>;
  /** Opens an engine in addition to the window's, to launch tasks that the window should show. */
  launcher(server: OpenCodeServer): Promise<EngineWindow>;
  /** Opens a window, and the view of the tasks in it. Its theme follows the system, which is dark. */
  window(options: WindowOptions): Promise<Workbench>;
}

/** Like {@link setUpEngine}, with a window that is tidied before each test; a failed test leaves a picture. */
export function setUp(prepare: (start: Start) => Promise<void>): void {
  let workbench: Workbench | undefined;

  setUpEngine((start) =>
    prepare({
      ...start,
      server: (options) => start.server({ password: null, ...options }),
      launcher: (server) => start.engine(server, { notifyParent: false }, { followsOnly: true }),
      window: async (options) => (workbench = await openWindow(start, options)),
    }),
  );

  beforeEach(() => workbench?.tidy());

  afterEach(async function () {
    await workbench?.recordFailure(this.currentTest);
  });
}

async function openWindow(
  start: EngineStart,
  { server, model, home = hermeticHome(), shows = hasNoTasks, ...options }: WindowOptions,
): Promise<Workbench> {
  const opened = await startWorkbench({
    fewBuiltIns: true,
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
  start.stop(() => opened.stop());
  if (shows) {
    await opened.openView();
    await shows(opened);
  }
  return opened;
}

async function hasNoTasks({ page }: Workbench): Promise<void> {
  await page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
}
