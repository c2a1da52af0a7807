import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FrameLocator, Locator, Page } from "playwright-core";
import { endBackground, stateFolderOf } from "../../support/background.ts";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import {
  openBrowser,
  startVsCodeServer,
  userSettings,
  type OpenBrowser,
  type Settings,
  type VsCodeServer,
} from "../../vscode/host.ts";
import { installedExtension } from "./extension.ts";

/** The themes used in tests: their names in the settings and in the list of themes, and the class of the workbench. */
const themes = {
  dark: { name: "Dark Modern", label: "Dark Modern", className: "vs-dark" },
  light: { name: "Light Modern", label: "Light Modern", className: "vs" },
  hc: { name: "Default High Contrast", label: "Dark High Contrast", className: "hc-black" },
} as const;

export type Theme = keyof typeof themes;

export interface WorkbenchOptions {
  /** The folder with installed extensions; by default one that contains the packaged extension. */
  readonly extensions?: string;
  /** See `VsCodeOptions`. */
  readonly fewBuiltIns?: boolean;
  readonly settings?: Settings;
  /** Added to the environment of the extension host. */
  readonly env?: NodeJS.ProcessEnv;
  /** The folder that the window opens: by default a new empty one; null for none. */
  readonly folder?: string | null;
  /** If false, the folder isn't trusted, and VS Code runs in restricted mode until `trustFolder`. */
  readonly trust?: boolean;
  /** Default: dark. */
  readonly theme?: Theme;
  readonly viewport?: { readonly width: number; readonly height: number };
  /** The language for extensions, such as `zh-cn`; VS Code itself stays English, because it has no language pack. */
  readonly language?: string;
  /** How long the server keeps the extension host of a window that disappeared, in seconds. */
  readonly reconnectionGrace?: number;
}

/** A part of the window, in pixels. */
export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Opens a VS Code window with a new profile and the packaged extension. */
export async function startWorkbench(options: WorkbenchOptions = {}): Promise<Workbench> {
  const userDirectory = tempDir("data");
  const { theme = "dark" } = options;
  const settings = { "workbench.colorTheme": themes[theme].name, ...options.settings };
  const server = await startVsCodeServer({
    userDirectory,
    extensionsDirectory: options.extensions ?? installedExtension(),
    fewBuiltIns: options.fewBuiltIns,
    settings,
    workspaceTrust: options.trust === false,
    reconnectionGrace: options.reconnectionGrace,
    ...(options.env ? { env: options.env } : {}),
  });
  const folder = options.folder === null ? undefined : (options.folder ?? tempDir("work"));
  const browser = await openBrowser(options.viewport);
  if (options.language !== undefined) await browser.page.addInitScript({ content: speak(options.language) });
  const workbench = new Workbench(
    server,
    browser,
    userDirectory,
    folder,
    theme,
    settings,
    options.env?.["HOME"],
  );
  try {
    await workbench.open();
  } catch (error) {
    await workbench.save("workbench-did-not-open");
    await workbench.stop();
    throw error;
  }
  return workbench;
}

/** Whether tests take pictures, which are only for people to look at: no test depends on them. */
export const picturesWanted = process.env["TEST_PICTURES"] === "all";

/** What VS Code shows in front of everything else, and where there are no rows. */
const MESSAGES =
  ".notification-list-item, .monaco-dialog-box, .quick-input-widget, .monaco-menu, .welcome-view, .tab.active";

/**
 * Fixes the variable from which VS Code reads its language; otherwise VS Code overwrites it without a language pack.
 */
function speak(language: string): string {
  return `Object.defineProperty(globalThis, "_VSCODE_NLS_LANGUAGE", {
    get: () => ${JSON.stringify(language)},
    set: () => undefined,
  });`;
}

/** A VS Code window and the actions of a user in it. Texts match partially and case-insensitively. */
export class Workbench {
  page: Page;
  quickInput: QuickInput;
  private readonly viewport: { readonly width: number; readonly height: number } | null;
  private theme: Theme;
  private settings: Settings;

  constructor(
    readonly server: VsCodeServer,
    private readonly browser: OpenBrowser,
    readonly userDirectory: string,
    readonly folder: string | undefined,
    private readonly initialTheme: Theme,
    private readonly initialSettings: Settings,
    /** The home of a user that no one else works as. */
    private readonly home: string | undefined,
  ) {
    this.page = browser.page;
    this.quickInput = new QuickInput(this.page);
    this.viewport = this.page.viewportSize();
    this.theme = initialTheme;
    this.settings = initialSettings;
  }

  /** Loads the window and waits for the extension's contributions. */
  async open(): Promise<void> {
    await this.page.goto(this.server.address({ folder: this.folder }));
    await this.loaded();
  }

  /** Reloads the window with VS Code's command, which keeps open editors; `open` would lose them. */
  async reload(): Promise<void> {
    await until(
      "the window to reload",
      async () => {
        const command = await this.findCommand("Developer: Reload Window");
        if (!command) return false;
        const loading = done(this.page.waitForEvent("domcontentloaded", { timeout: 30_000 }));
        // If the page goes before the end of the click is known, the click counts as failed: once more, and the window
        // would reload again, perhaps before it has restored what was open.
        await done(command.click({ timeout: 15_000 }));
        return loading;
      },
      120_000,
    );
    await this.loaded();
  }

  /**
   * Restores the state in which every test begins, whatever the previous test left: nothing covers the workbench, no
   * editor has unsaved text, theme, size and settings are the initial ones, and neither mouse nor focus is on anything
   * under test.
   */
  async tidy(): Promise<void> {
    const { page } = this;
    await page.mouse.move(0, 0);
    const dialog = page.locator(".monaco-dialog-box").filter({ visible: true });
    for (const open of [dialog, this.menu])
      await until("what lies over the window to close", async () => {
        if ((await open.count()) === 0) return true;
        await page.keyboard.press("Escape");
        return done(open.waitFor({ state: "hidden", timeout: 1_000 }));
      });
    await this.quickInput.cancel();
    await this.restoreLook();
    await this.closeUnsaved();
    if (this.settings !== this.initialSettings) await this.writeSettings(this.initialSettings);
    const told = this.notification("");
    if (await told.count()) {
      await this.runCommand("Notifications: Clear All Notifications");
      await told.first().waitFor({ state: "detached" });
    }
    // When a quick input closes, it moves the focus to the active editor if nothing had it before. A webview there
    // takes the focus only a moment later, and so takes it from the next quick input.
    await page.locator(".part.statusbar").focus();
  }

  /** Presses keys one after the other, each as soon as the focused page can receive it. */
  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      await this.hearsKeys();
      await this.page.keyboard.press(key);
    }
  }

  /** Types into the editor that has the focus. */
  async write(text: string): Promise<void> {
    await this.page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
    await this.page.keyboard.type(text);
  }

  /** Presses Ctrl+K and then these keys, each once the status bar shows that it is expected. */
  async pressAfterCtrlK(...keys: readonly string[]): Promise<void> {
    const status = (text: string): Locator => this.statusBarItem(text);
    await this.press("Control+K");
    for (const [index, key] of keys.entries()) {
      await status(`Waiting for ${index === 0 ? "second" : "next"} key`).waitFor();
      await this.page.keyboard.press(key);
    }
    await status("Waiting for").waitFor({ state: "detached" });
    if (await status("is not a command").isVisible())
      throw new Error(await status("is not a command").innerText());
  }

  /**
   * Runs a command from the palette, by its title with category: `Async Agents: Launch`. Retries, because the palette
   * lists only the commands that existed when it was filled, which may be incomplete in a new window, and because a
   * page that is loading in an editor may close the palette by taking the focus.
   */
  async runCommand(title: string): Promise<void> {
    const command = await until(
      `the palette to run "${title}"`,
      async () => {
        const found = await this.findCommand(title);
        // Time enough for a busy window: a click that is given up may still run the command, and then it runs twice.
        return found && (await done(found.click({ timeout: 15_000 }))) && found;
      },
      60_000,
    );
    await command.waitFor({ state: "hidden" });
  }

  /** The row of a command in the palette, if it is listed this time. */
  private async findCommand(title: string): Promise<Locator | undefined> {
    const command = this.quickInput.items.filter({ hasText: title }).first();
    await this.press("F1");
    if (!(await isThere(this.quickInput.input))) return undefined;
    // The short timeout is for a box that closes at this moment.
    await this.quickInput.input.fill(`>${title}`, { timeout: 3_000 });
    if (await isThere(command)) return command;
    await this.quickInput.cancel();
    return undefined;
  }

  /** Shows the view of the tasks. Retries, because the click closes a view that the window has just restored. */
  async openView(): Promise<void> {
    const open = this.page.locator(".part.sidebar .composite.title", { hasText: "Async Agents" });
    await until(
      "the view of the tasks",
      async () => {
        // Forced, because a badge may cover the item; a click on the badge works as well.
        if (!(await open.isVisible())) await this.activityBarItem.click({ force: true });
        return isThere(open);
      },
      30_000,
    );
  }

  /**
   * A row of the tree, by a part of its text, or of its text for screen readers, which has the whole description. Not that
   * of a launch, which goes a moment after the task has its own.
   */
  treeItem(label: string): Locator {
    return this.treeItems.filter({ hasText: label }).or(this.spoken(label)).and(this.launched);
  }

  /** The rows of the tree with this part in their text for screen readers. */
  spoken(part: string): Locator {
    return this.treeItems.and(this.page.locator(`[aria-label*=${JSON.stringify(part)}]`));
  }

  /** A row of the tree, by the beginning of its text for screen readers; not that of a launch. */
  row(spoken: string): Locator {
    return this.treeItems.and(this.page.locator(`[aria-label^="${spoken}"]`)).and(this.launched);
  }

  private get launched(): Locator {
    return this.page.locator(':not([aria-label$=", launching…"])');
  }

  /** A selected row, by a part of its text; launching or resuming a task selects its row. */
  selectedRow(label: string): Locator {
    return this.treeItem(label).and(this.page.locator('[aria-selected="true"]'));
  }

  /** All visible rows of the tree. */
  get treeItems(): Locator {
    return this.page.locator('.part.sidebar [role="treeitem"]');
  }

  /** Shows all notifications, also those that have hidden themselves, which they do after ten seconds. */
  async showNotifications(): Promise<void> {
    await this.runCommand("Notifications: Show Notifications");
    await this.page.locator(".notifications-center").waitFor();
  }

  /**
   * Clicks a row; see `hoverRow`. When rows move, VS Code shows another row in the same element: a click that would hit
   * another one is kept from it, and made again.
   */
  async clickRow(row: Locator): Promise<void> {
    await until("the click to hit its row", async () => {
      await this.hoverRow(row);
      const guard = await row.first().evaluateHandle((meant) => {
        // Not named functions: see `rowsIdle`.
        const name = meant.querySelector(".label-name")?.textContent;
        const events = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
        const made = {
          missed: false,
          handleEvent(event: Event): void {
            const hit = (event.target as Element).closest('[role="treeitem"]');
            if (!made.missed && hit?.querySelector(".label-name")?.textContent === name) return;
            made.missed = true;
            event.stopImmediatePropagation();
            event.preventDefault();
          },
          remove(): void {
            for (const type of events) document.removeEventListener(type, made, true);
          },
        };
        for (const type of events) document.addEventListener(type, made, true);
        return made;
      });
      try {
        await row.first().click();
      } finally {
        await guard.evaluate((made) => made.remove());
      }
      return await guard.evaluate(({ missed }) => !missed);
    });
  }

  /** Moves the mouse to a row once the rows no longer change. */
  async hoverRow(row: Locator): Promise<void> {
    await row.first().waitFor();
    await this.rowsIdle();
    await row.first().hover();
  }

  /**
   * Shows the tooltip of a row and waits for its text. VS Code closes a tooltip whose row it redraws, and shows it again
   * only when the mouse comes back.
   */
  async tooltipOf(row: Locator, text: string): Promise<Locator> {
    const tooltip = this.page.locator(".workbench-hover", { hasText: text });
    await until(`the tooltip with "${text}"`, async () => {
      await this.hoverRow(row);
      await tooltip.waitFor({ timeout: 3_000 });
      return true;
    });
    return tooltip;
  }

  /**
   * Waits until no hover covers the rows and no row has changed for half a second, but at most five seconds. A hover,
   * or a row that appears or disappears above, would get in the mouse's way. VS Code redraws rows up to a quarter of a
   * second after a change, and passes no row to a menu that is used during the redraw.
   */
  async rowsIdle(): Promise<void> {
    await this.leaveHover();
    await this.page.evaluate(async () => {
      // Named functions would need a helper of the compiler that doesn't exist in the page.
      let observer: MutationObserver | undefined;
      await new Promise<void>((resolve) => {
        let resting = window.setTimeout(resolve, 500);
        window.setTimeout(resolve, 5_000);
        observer = new MutationObserver(() => {
          clearTimeout(resting);
          resting = window.setTimeout(resolve, 500);
        });
        for (const rows of document.querySelectorAll(".part.sidebar .monaco-list-rows"))
          observer.observe(rows, { subtree: true, childList: true, attributes: true, characterData: true });
      });
      observer?.disconnect();
    });
  }

  /**
   * Moves the mouse away from everything with a hover, and waits until the current hover is gone. If the element under
   * the hover has disappeared, the hover stays until the mouse has been on the hover itself.
   */
  async leaveHover(): Promise<void> {
    const hover = this.page.locator(".monaco-hover:visible").first();
    await until("the hover to go", async () => {
      await this.page.mouse.move(0, 0);
      if (await done(hover.waitFor({ state: "hidden", timeout: 2_000 }))) return true;
      await hover.hover({ timeout: 2_000 });
      return false;
    });
  }

  /** The texts of a row's decorations, which are its badges. */
  async badges(item: Locator): Promise<string[]> {
    return await item.evaluate((row) =>
      [...row.querySelectorAll("*")]
        .map((element) => getComputedStyle(element, "::after").content)
        .filter((content) => /^".+"$/.test(content))
        .map((content) => content.slice(1, -1)),
    );
  }

  /** Opens the context menu of an element. */
  async openContextMenu(target: Locator): Promise<Locator> {
    await this.rowsIdle();
    await target.click({ button: "right" });
    const entries = this.page.locator(
      ".monaco-menu .action-item:not(.disabled) .action-label:not(.separator)",
    );
    await entries.first().waitFor();
    return entries;
  }

  /** The entries of an element's context menu; closes the menu again. */
  async menuEntries(target: Locator): Promise<readonly string[]> {
    const entries = await this.openContextMenu(target);
    const texts = await entries.allInnerTexts();
    await this.closeMenu();
    return texts.filter((text) => text !== "");
  }

  async closeMenu(): Promise<void> {
    await this.press("Escape");
    await this.menu.waitFor({ state: "hidden" });
  }

  /** Chooses an entry of an element's context menu. */
  async contextMenu(target: Locator, entry: string): Promise<void> {
    const chosen = (await this.openContextMenu(target)).filter({ hasText: entry }).first();
    await chosen.waitFor();
    let isClicked = false;
    // Right after it opens, the menu treats a click as the end of the click that opened it.
    await until(`the menu entry "${entry}" to be taken`, async () => {
      const isOpen = await chosen.isVisible();
      if (!isOpen && isClicked) return true;
      // What opens in the window closes the menu.
      if (!isOpen) await this.openContextMenu(target);
      // Long enough that no click that arrives is given up, and made again.
      await chosen.click({ timeout: 15_000 });
      isClicked = true;
      return false;
    });
  }

  /** The document inside the visible webview. */
  webviewFrame(): FrameLocator {
    const outer = this.page.locator("iframe.webview.ready").filter({ visible: true }).last();
    return outer.contentFrame().locator("#active-frame").contentFrame();
  }

  /** The tab of an editor, by its title. */
  tab(title: string | RegExp): Locator {
    return this.page.locator('.tabs-container [role="tab"]', { hasText: title });
  }

  /** A notification, by a part of its text; contains its buttons. */
  notification(text: string | RegExp): Locator {
    const places = [".notifications-toasts", ".notifications-center"];
    const items = places.map((place) => `${place} .notification-list-item`).join(", ");
    return this.page.locator(items, { hasText: text });
  }

  /** A status bar item, by a part of its text. */
  statusBarItem(text: string | RegExp): Locator {
    return this.page.locator(".statusbar-item", { hasText: text });
  }

  /** A modal dialog, by a part of its text; contains its buttons. */
  dialog(text: string | RegExp): Locator {
    return this.page.locator(".monaco-dialog-box", { hasText: text });
  }

  /** Opens a file by the end of its path, and waits until it can be edited. */
  async openFile(name: string): Promise<void> {
    await this.press("Control+P");
    await this.quickInput.write(name);
    await this.quickInput.choose(name);
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  /** Changes the machine's settings in the editor, because the file watcher misses changes made outside. */
  async changeSettings(changes: Settings): Promise<void> {
    await this.writeSettings({ ...this.settings, ...changes });
  }

  /** Changes the theme and waits until the window uses it. */
  async setTheme(theme: Theme): Promise<void> {
    await this.runCommand("Preferences: Color Theme");
    await this.quickInput.type(themes[theme].label);
    await this.quickInput.choose(themes[theme].label);
    // The list previews a theme before it is applied.
    await this.quickInput.widget.waitFor({ state: "hidden" });
    await this.page.locator(`.monaco-workbench.${themes[theme].className}`).waitFor();
    this.theme = theme;
  }

  /** Trusts the folder with the button of the workspace trust editor. */
  async trustFolder(): Promise<void> {
    await this.runCommand("Workspaces: Manage Workspace Trust");
    await this.page
      .locator(".workspace-trust-editor")
      .getByRole("button", { name: "Trust", exact: true })
      .click();
  }

  /** Kills the extension host like a crash, and waits for the new one. */
  async crashExtensionHost(): Promise<void> {
    const before = this.server.extensionHosts();
    this.server.killExtensionHosts();
    await until(
      "a new extension host",
      () => this.server.extensionHosts().some((pid) => !before.includes(pid)),
      30_000,
    );
  }

  /** Ends the window without a goodbye to the server, like a lost network; `open` opens another one in its place. */
  async lose(): Promise<void> {
    const { page } = this;
    const session = await page.context().newCDPSession(page);
    const crashed = page.waitForEvent("crash");
    session.send("Page.crash").catch(() => undefined);
    await crashed;
    this.page = await page.context().newPage();
    this.quickInput = new QuickInput(this.page);
  }

  /** Takes a picture of the window, or a part of it, if {@link picturesWanted}. */
  async screenshot(name: string, clip?: Rectangle): Promise<void> {
    if (picturesWanted) await this.save(name, clip);
  }

  /** Saves a picture in `test-results/screenshots`. */
  async save(name: string, clip?: Rectangle): Promise<void> {
    const directory = join(repository, "test-results", "screenshots");
    mkdirSync(directory, { recursive: true });
    await this.page.screenshot({
      path: join(directory, `${name}.png`),
      animations: "disabled",
      ...(clip && { clip }),
    });
  }

  /** Takes a picture if the test failed, and adds to its error what the window shows; for `afterEach`. */
  async recordFailure(test: Mocha.Test | undefined): Promise<void> {
    if (test?.state !== "failed") return;
    await this.save(`failed-${test.title.replace(/[^\w]+/g, "-").slice(0, 80)}`);
    const shown = [
      ...(await this.treeItems.evaluateAll((rows) =>
        rows.map(
          (row) =>
            (row.getAttribute("aria-label") ?? "") +
            (row.getAttribute("aria-expanded") === "false" ? " (collapsed)" : "") +
            (row.getAttribute("aria-selected") === "true" ? " (selected)" : ""),
        ),
      )),
      ...(await this.page.locator(MESSAGES).filter({ visible: true }).allInnerTexts()),
    ];
    if (test.err)
      test.err.message += `\nThe window showed:\n${shown.join("\n")}\nThe logs ended with:\n${this.endOfLogs()}`;
  }

  /** The last lines of what the newest window and the background process have logged. */
  private endOfLogs(): string {
    const folder = join(this.userDirectory, "logs");
    const windows = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith("Async Agents.log"))
      .map((file) => join(folder, file))
      .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
    const background = this.home === undefined ? [] : [join(stateFolderOf(this.home), "daemon.log")];
    return [...windows.slice(0, 1), ...background.filter((file) => existsSync(file))]
      .map((file) => readFileSync(file, "utf8").trimEnd().split("\n").slice(-12).join("\n"))
      .join("\n");
  }

  /** Closes the window; background work continues. */
  async close(): Promise<void> {
    await this.browser.close();
    await this.server.stop();
  }

  /** Closes the window, and ends background work. */
  async stop(): Promise<void> {
    await this.close();
    if (this.home !== undefined) await endBackground(this.home);
  }

  /** Closes editors with unsaved or never saved text, without a prompt. */
  private async closeUnsaved(): Promise<void> {
    const unsaved = this.page.locator(
      '.tabs-container .tab.dirty, .tabs-container .tab[data-resource-name^="Untitled-"]',
    );
    const active = this.page.locator(".tabs-container .tab.active").and(unsaved);
    for (let left; (left = await unsaved.count()) > 0;) {
      const isLess = async (): Promise<boolean> => (await unsaved.count()) < left;
      // Editors also save automatically, so there may be nothing left to close.
      await until("an unsaved editor to be shown, or saved", async () => {
        if ((await isLess()) || (await active.count()) > 0) return true;
        await unsaved.first().click({ timeout: 1_000 });
        return false;
      });
      if (await isLess()) continue;
      await this.runCommand("View: Revert and Close Editor");
      await until("the editor to close", isLess);
    }
  }

  private async restoreLook(): Promise<void> {
    const { page, viewport } = this;
    const size = page.viewportSize();
    if (viewport && (size?.width !== viewport.width || size.height !== viewport.height))
      await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: "dark", forcedColors: "none" });
    if (this.theme !== this.initialTheme) await this.setTheme(this.initialTheme);
    await page.locator(`.monaco-workbench.${themes[this.theme].className}`).waitFor();
  }

  /** Waits for pages that are loading in editors: these may have or take the focus, but don't receive keys yet. */
  private async hearsKeys(): Promise<void> {
    await until(
      "the pages in the window to load",
      async () => {
        const loading = await this.page.evaluate(() =>
          [...document.querySelectorAll<HTMLIFrameElement>("iframe.webview")]
            .filter((outer) => outer.checkVisibility({ visibilityProperty: true }))
            .map(({ contentDocument }) =>
              ["#active-frame", "#pending-frame"].map((id) => {
                const frame = contentDocument?.querySelector<HTMLIFrameElement>(id);
                return frame ? (frame.contentDocument?.readyState ?? "without a document") : "absent";
              }),
            )
            .filter(([active, pending]) => active !== "complete" || pending !== "absent"),
        );
        if (loading.length > 0) throw new Error(`active and pending frame: ${loading.join(" | ")}`);
        return true;
      },
      30_000,
    );
  }

  private async writeSettings(settings: Settings): Promise<void> {
    this.settings = settings;
    await this.runCommand("Preferences: Open Remote Settings (JSON)");
    const editor = this.page.locator(".editor-instance .monaco-editor.focused").first();
    await editor.waitFor();
    const text = userSettings(settings);
    const file = join(this.userDirectory, "Machine", "settings.json");
    // An editor that has just opened can have the focus before it takes keys.
    await until("the text to be selected", async () => {
      await this.press("Control+A");
      return isThere(this.statusBarItem("selected)"));
    });
    await this.page.keyboard.insertText(text);
    await this.press("Control+S");
    await until("exactly these settings", () => readFileSync(file, "utf8") === text);
    await this.page.locator(".tab.active:not(.dirty)", { hasText: "settings.json" }).waitFor();
    await this.runCommand("View: Close Editor");
    await editor.waitFor({ state: "detached" });
  }

  private async loaded(): Promise<void> {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.activityBarItem.waitFor();
  }

  get menu(): Locator {
    return this.page.locator(".monaco-menu").filter({ visible: true });
  }

  get activityBarItem(): Locator {
    return this.page.locator('.activitybar a[aria-label^="Async Agents"]').first();
  }
}

/** Whether the element is visible now or within a moment. */
function isThere(locator: Locator): Promise<boolean> {
  return done(locator.waitFor({ timeout: 3_000 }));
}

function done(action: Promise<unknown>): Promise<boolean> {
  return action.then(
    () => true,
    () => false,
  );
}

/** The input box or list at the top of the window. */
export class QuickInput {
  constructor(private readonly page: Page) {}

  get widget(): Locator {
    return this.page.locator(".quick-input-widget").filter({ visible: true });
  }

  get input(): Locator {
    return this.widget.locator("input").first();
  }

  /** The rows of the list. */
  get items(): Locator {
    return this.widget.locator(".quick-input-list .monaco-list-row");
  }

  /** Waits until this text is shown: a prompt, a placeholder or a validation message. */
  async shows(text: string | RegExp): Promise<void> {
    const widget = this.widget;
    await widget
      .filter({ hasText: text })
      .or(widget.filter({ has: this.page.getByPlaceholder(text) }))
      .first()
      .waitFor();
  }

  /** Replaces the text in the box. */
  async type(text: string): Promise<void> {
    await this.input.fill(text);
  }

  /** Types at the cursor once the box has the focus. */
  async write(text: string): Promise<void> {
    await this.hasFocus();
    await this.page.keyboard.type(text);
    await until(`"${text}" to be typed`, async () => (await this.input.inputValue()).includes(text));
  }

  /** Replaces the text and confirms. */
  async enter(text: string): Promise<void> {
    await this.type(text);
    await this.accept();
  }

  async accept(): Promise<void> {
    await this.press("Enter");
  }

  /** Presses keys one after the other once the box has the focus. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.hasFocus();
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Closes the quick input if it is open. */
  async cancel(): Promise<void> {
    await until("the quick input to close", async () => {
      if (!(await this.widget.isVisible())) return true;
      await this.input.press("Escape", { timeout: 1_000 });
      return done(this.widget.waitFor({ state: "hidden", timeout: 3_000 }));
    });
  }

  /** Chooses the first row with this label. */
  async choose(label: string): Promise<void> {
    await this.items.filter({ hasText: label }).first().click();
  }

  /**
   * Waits until the box has the focus. If the editor redraws a row of the tree before it has noticed that the tree lost the
   * focus, it gives that back to the tree: then the user has to go to the box.
   */
  private async hasFocus(): Promise<void> {
    const inTree = this.page.locator(".part.sidebar .monaco-list:focus");
    await this.widget.locator(":focus").or(inTree).first().waitFor({ state: "attached" });
    if (await inTree.count()) await this.input.focus();
    await this.widget.locator(":focus").first().waitFor({ state: "attached" });
  }
}
