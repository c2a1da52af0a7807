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
  /** The window works with this server, in the server's folder. */
  readonly server?: OpenCodeServer;
  /** Without a server: the window starts its own, which knows this model. */
  readonly model?: ScriptedModel;
  /** Where that server keeps its data; a new one (see `hermeticHome`) if left out. */
  readonly home?: string;
  /** What to wait for in the view of the tasks, by default that there are none yet; null leaves the view closed. */
  readonly shows?: ((workbench: Workbench) => Promise<unknown>) | null;
}

/** As in {@link EngineStart}, with a window. */
export interface Start extends EngineStart {
  /** A server that asks for no password. */
  server(options: OpenCodeOptions): Promise<OpenCodeServer>;
  /** An engine beside the window's, to launch what the window is to show. */
  launcher(server: OpenCodeServer): Promise<EngineWindow>;
  /** Opens a window, and in it the view of the tasks. Its theme is the system's, which is dark. */
  window(options: WindowOptions): Promise<Workbench>;
}

/**
 * As {@link setUpEngine}, with a window that each test finds tidy (see `Workbench.tidy`); one that fails leaves a picture.
 */
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
  await page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor({ timeout: 60_000 });
}
