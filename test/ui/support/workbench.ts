import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { FrameLocator, Locator, Page } from "playwright-core";
import { endBackground } from "../../support/background.ts";
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

/** The themes that views are looked at in: in the settings, in the list of themes, and the class the workbench has. */
const themes = {
  dark: { name: "Dark Modern", label: "Dark Modern", className: "vs-dark" },
  light: { name: "Light Modern", label: "Light Modern", className: "vs" },
  hc: { name: "Default High Contrast", label: "Dark High Contrast", className: "hc-black" },
} as const;

export type Theme = keyof typeof themes;

export interface WorkbenchOptions {
  /** The folder of the installed extensions; left out: this one is there as it is packaged. */
  readonly extensions?: string;
  readonly settings?: Settings;
  /** Added to the environment of the extension host. */
  readonly env?: NodeJS.ProcessEnv;
  /** The folder that the window opens: a new empty one if left out, none for null. */
  readonly folder?: string | null;
  /** False: the folder is not trusted, and VS Code runs in restricted mode until `trustFolder`. */
  readonly trust?: boolean;
  /** Default: dark. */
  readonly theme?: Theme;
  readonly viewport?: { readonly width: number; readonly height: number };
  /** What extensions speak, as `zh-cn`; the editor itself stays English, as it has no language pack. */
  readonly language?: string;
  /** How long the server keeps the extension host of a window that is gone without a word, in seconds. */
  readonly reconnectionGrace?: number;
}

/** A part of the window, in pixels. */
export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Opens a VS Code window with a new profile that holds the packaged extension, as a user would have it. */
export async function startWorkbench(options: WorkbenchOptions = {}): Promise<Workbench> {
  const userDirectory = tempDir("data");
  const { theme = "dark" } = options;
  const settings = { "workbench.colorTheme": themes[theme].name, ...options.settings };
  const server = await startVsCodeServer({
    userDirectory,
    extensionsDirectory: options.extensions ?? installedExtension(),
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
    await workbench.screenshot("workbench-did-not-open");
    await workbench.stop();
    throw error;
  }
  return workbench;
}

/** What the editor takes its language from, kept from what it writes there itself when it loads without a language pack. */
function speak(language: string): string {
  return `Object.defineProperty(globalThis, "_VSCODE_NLS_LANGUAGE", {
    get: () => ${JSON.stringify(language)},
    set: () => undefined,
  });`;
}

/** A VS Code window and what a user does in it. Texts are matched as parts, without regard to case. */
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
    /** Of a user that nobody else works as. */
    private readonly home: string | undefined,
  ) {
    this.page = browser.page;
    this.quickInput = new QuickInput(this.page);
    this.viewport = this.page.viewportSize();
    this.theme = initialTheme;
    this.settings = initialSettings;
  }

  /** Loads the window and waits until the extension's contributions are there. */
  async open(): Promise<void> {
    await this.page.goto(this.server.address({ folder: this.folder }));
    await this.loaded();
  }

  /** Reloads the window as its own command does, which keeps what is open: `open` again would lose it. */
  async reload(): Promise<void> {
    const loading = this.page.waitForEvent("domcontentloaded");
    await this.runCommand("Developer: Reload Window");
    await loading;
    await this.loaded();
  }

  /**
   * Brings the window to where every test begins, whatever the one before it left: nothing is open over the workbench,
   * no editor holds unsaved text, theme, size and settings are those of the start, and neither the mouse nor the
   * keyboard is on anything that a test is about.
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
    // A quick input that closes gives the focus back: to what is active in the editors where nothing had it, and a webview
    // there takes it a moment later, from the quick input that follows.
    await page.locator(".part.statusbar").focus();
  }

  /** Presses keys where the focus is, one after the other, each once the window hears it. */
  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      await this.hearsKeys();
      await this.page.keyboard.press(key);
    }
  }

  /** Types with the keyboard into the editor that has the focus. */
  async write(text: string): Promise<void> {
    await this.page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
    await this.page.keyboard.type(text);
  }

  /** Presses Ctrl+K and then these keys, each once the status bar says that it is waited for. */
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
   * Runs a command from the palette, by its title with its category: `Async Agents: Launch`. The palette lists what
   * could be run when it was filled, which of a window that has just opened is not all; and a page that begins to load
   * in an editor closes it by taking the focus. Then it is opened again.
   */
  async runCommand(title: string): Promise<void> {
    const command = this.quickInput.items.filter({ hasText: title }).first();
    await until(
      `the palette to run "${title}"`,
      async () => {
        await this.press("F1");
        if (!(await isThere(this.quickInput.input))) return false;
        // Fails soon where the box closes just now.
        await this.quickInput.input.fill(`>${title}`, { timeout: 3_000 });
        if (await isThere(command)) return done(command.click({ timeout: 3_000 }));
        await this.quickInput.cancel();
        return false;
      },
      30_000,
    );
    await command.waitFor({ state: "hidden" });
  }

  /** Shows the view of the tasks. A click closes it where the window brought it back in just that moment: then again. */
  async openView(): Promise<void> {
    const open = this.page.locator(".part.sidebar .composite.title", { hasText: "Async Agents" });
    await until(
      "the view of the tasks",
      async () => {
        // Forced, as a badge can lie over it, which takes the click just as well.
        if (!(await open.isVisible())) await this.activityBarItem.click({ force: true });
        return isThere(open);
      },
      30_000,
    );
  }

  /** A row of the tree by (part of) its text. */
  treeItem(label: string | RegExp): Locator {
    return this.treeItems.filter({ hasText: label });
  }

  /** A row of the tree by the beginning of what a screen reader says of it. */
  row(spoken: string): Locator {
    return this.treeItems.and(this.page.locator(`[aria-label^="${spoken}"]`));
  }

  /** A row that is selected, as that of a task is once it was launched or resumed, by (part of) its text. */
  selectedRow(label: string): Locator {
    return this.treeItem(label).and(this.page.locator('[aria-selected="true"]'));
  }

  /** All visible rows of the tree. */
  get treeItems(): Locator {
    return this.page.locator('.part.sidebar [role="treeitem"]');
  }

  /** Clicks a row: see `hoverRow`. */
  async clickRow(row: Locator): Promise<void> {
    await this.hoverRow(row);
    await row.first().click();
  }

  /** Moves the mouse to a row once the rows are idle. */
  async hoverRow(row: Locator): Promise<void> {
    await row.first().waitFor();
    await this.rowsIdle();
    await row.first().hover();
  }

  /**
   * Waits until no hover lies over the rows and none of them has changed for half a second. The hover of the row that the
   * mouse was on, or a row that comes or goes above, would be in the way of the mouse; and the editor draws rows anew up
   * to a quarter of a second after the first of a change's, and gives a menu that is used in that moment no row. Rows that
   * change all the time are waited for no longer than five seconds.
   */
  private async rowsIdle(): Promise<void> {
    await this.leaveHover();
    await this.page.evaluate(async () => {
      // Functions with a name would need a helper of the compiler's, which the page does not have.
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
   * Moves the mouse to where nothing has a hover, and waits until that of what it was on is gone. Where what it was on is
   * gone too, the hover stays until the mouse has been on the hover itself.
   */
  async leaveHover(): Promise<void> {
    const hover = this.page.locator(".monaco-hover:visible").first();
    await this.page.mouse.move(0, 0);
    const left = await hover.waitFor({ state: "hidden", timeout: 2_000 }).then(
      () => true,
      () => false,
    );
    if (left) return;
    await hover.hover();
    await this.page.mouse.move(0, 0);
    await hover.waitFor({ state: "hidden" });
  }

  /** The texts that a row's decorations draw beside it: the badge, without its colour. */
  async badges(item: Locator): Promise<string[]> {
    return await item.evaluate((row) =>
      [...row.querySelectorAll("*")]
        .map((element) => getComputedStyle(element, "::after").content)
        .filter((content) => /^".+"$/.test(content))
        .map((content) => content.slice(1, -1)),
    );
  }

  /** Opens the context menu of something. */
  async openContextMenu(target: Locator): Promise<Locator> {
    await this.rowsIdle();
    await target.click({ button: "right" });
    const entries = this.page.locator(
      ".monaco-menu .action-item:not(.disabled) .action-label:not(.separator)",
    );
    await entries.first().waitFor();
    return entries;
  }

  /** The entries of the context menu of something, which is closed again. */
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

  /** Chooses an entry of the context menu of something. */
  async contextMenu(target: Locator, entry: string): Promise<void> {
    const chosen = (await this.openContextMenu(target)).filter({ hasText: entry }).first();
    await chosen.waitFor();
    // For a moment after it opened, the menu takes a click for the end of the one that opened it.
    await until(`the menu entry "${entry}" to be taken`, async () => {
      if (!(await chosen.isVisible())) return true;
      await chosen.click({ timeout: 1_000 });
      return false;
    });
  }

  /** The document inside the visible webview. */
  webviewFrame(): FrameLocator {
    const outer = this.page.locator("iframe.webview.ready").filter({ visible: true }).last();
    return outer.contentFrame().locator("#active-frame").contentFrame();
  }

  /** The tab of an editor by its title. */
  tab(title: string | RegExp): Locator {
    return this.page.locator('.tabs-container [role="tab"]', { hasText: title });
  }

  /** A notification by (part of) its text; its buttons are inside. */
  notification(text: string | RegExp): Locator {
    const places = [".notifications-toasts", ".notifications-center"];
    const items = places.map((place) => `${place} .notification-list-item`).join(", ");
    return this.page.locator(items, { hasText: text });
  }

  /** An entry of the status bar by (part of) its text. */
  statusBarItem(text: string | RegExp): Locator {
    return this.page.locator(".statusbar-item", { hasText: text });
  }

  /** A modal dialog by (part of) its text; its buttons are inside. */
  dialog(text: string | RegExp): Locator {
    return this.page.locator(".monaco-dialog-box", { hasText: text });
  }

  /** Opens a file by (the end of) its path, and waits until one can write in it. */
  async openFile(name: string): Promise<void> {
    await this.press("Control+P");
    await this.quickInput.write(name);
    await this.quickInput.choose(name);
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  /** Changes settings of the machine while the window is open: in the editor, as the file's watcher misses changes made outside. */
  async changeSettings(changes: Settings): Promise<void> {
    await this.writeSettings({ ...this.settings, ...changes });
  }

  /** Changes the theme and waits until the window wears it. */
  async setTheme(theme: Theme): Promise<void> {
    await this.runCommand("Preferences: Color Theme");
    await this.quickInput.type(themes[theme].label);
    await this.quickInput.choose(themes[theme].label);
    // The list tries a theme on before it is taken.
    await this.quickInput.widget.waitFor({ state: "hidden" });
    await this.page.locator(`.monaco-workbench.${themes[theme].className}`).waitFor();
    this.theme = theme;
  }

  /** Trusts the folder, as the button in the editor for workspace trust does. */
  async trustFolder(): Promise<void> {
    await this.runCommand("Workspaces: Manage Workspace Trust");
    await this.page
      .locator(".workspace-trust-editor")
      .getByRole("button", { name: "Trust", exact: true })
      .click();
  }

  /** Ends the extension host as a crash would and waits for the new one. */
  async crashExtensionHost(): Promise<void> {
    const before = this.server.extensionHosts();
    this.server.killExtensionHosts();
    await until(
      "a new extension host",
      () => this.server.extensionHosts().some((pid) => !before.includes(pid)),
      30_000,
    );
  }

  /** Ends the window as a lost network does, whose server gets no last word; `open` opens another one in its place. */
  async lose(): Promise<void> {
    const { page } = this;
    const session = await page.context().newCDPSession(page);
    const crashed = page.waitForEvent("crash");
    session.send("Page.crash").catch(() => undefined);
    await crashed;
    this.page = await page.context().newPage();
    this.quickInput = new QuickInput(this.page);
  }

  /** Takes a picture, of a part of the window if given, into `test-results/screenshots`. */
  async screenshot(name: string, clip?: Rectangle): Promise<void> {
    const directory = join(repository, "test-results", "screenshots");
    mkdirSync(directory, { recursive: true });
    await this.page.screenshot({
      path: join(directory, `${name}.png`),
      animations: "disabled",
      ...(clip && { clip }),
    });
  }

  /** Takes a picture if the test failed; for `afterEach`. */
  async recordFailure(test: Mocha.Test | undefined): Promise<void> {
    if (test?.state === "failed")
      await this.screenshot(`failed-${test.title.replace(/[^\w]+/g, "-").slice(0, 80)}`);
  }

  /** Closes the window; what goes on in the background stays. */
  async close(): Promise<void> {
    await this.browser.close();
    await this.server.stop();
  }

  /** Closes the window, and ends what goes on in the background. */
  async stop(): Promise<void> {
    await this.close();
    if (this.home !== undefined) await endBackground(this.home);
  }

  /** Closes the editors whose text is not saved, and those of documents that never were, without a question. */
  private async closeUnsaved(): Promise<void> {
    const unsaved = this.page.locator(
      '.tabs-container .tab.dirty, .tabs-container .tab[data-resource-name^="Untitled-"]',
    );
    const active = this.page.locator(".tabs-container .tab.active").and(unsaved);
    for (let left; (left = await unsaved.count()) > 0;) {
      const isLess = async (): Promise<boolean> => (await unsaved.count()) < left;
      // The editor saves by itself too, and then there may be nothing to close any more.
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

  /** A page that is loading in an editor may have the focus, or take it, and hears no key yet. */
  private async hearsKeys(): Promise<void> {
    await this.page.waitForFunction(() =>
      [...document.querySelectorAll<HTMLIFrameElement>("iframe.webview")]
        .filter((outer) => outer.checkVisibility({ visibilityProperty: true }))
        .every(({ contentDocument }) => {
          const shown = contentDocument?.querySelector<HTMLIFrameElement>("#active-frame");
          const isLoading = contentDocument?.querySelector("#pending-frame") !== null;
          return shown?.contentDocument?.readyState === "complete" && !isLoading;
        }),
    );
  }

  private async writeSettings(settings: Settings): Promise<void> {
    this.settings = settings;
    await this.runCommand("Preferences: Open Remote Settings (JSON)");
    const editor = this.page.locator(".editor-instance .monaco-editor.focused").first();
    await editor.waitFor();
    await this.press("Control+A");
    await this.page.keyboard.insertText(userSettings(settings));
    await this.press("Control+S");
    await this.page.locator(".tab.active:not(.dirty)", { hasText: "settings.json" }).waitFor();
    await this.runCommand("View: Close Editor");
    await editor.waitFor({ state: "detached" });
  }

  private async loaded(): Promise<void> {
    await this.page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
    await this.activityBarItem.waitFor({ timeout: 60_000 });
  }

  private get menu(): Locator {
    return this.page.locator(".monaco-menu").filter({ visible: true });
  }

  private get activityBarItem(): Locator {
    return this.page.locator('.activitybar a[aria-label^="Async Agents"]').first();
  }
}

/** Whether it can be seen now, or is in a moment. */
function isThere(locator: Locator): Promise<boolean> {
  return done(locator.waitFor({ timeout: 3_000 }));
}

function done(action: Promise<void>): Promise<boolean> {
  return action.then(
    () => true,
    () => false,
  );
}

/** The input box or list that opens at the top of the window. */
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

  /** Waits until it shows this text: a prompt, a placeholder or a validation message. */
  async shows(text: string | RegExp): Promise<void> {
    const widget = this.widget;
    await widget
      .filter({ hasText: text })
      .or(widget.filter({ has: this.page.getByPlaceholder(text) }))
      .first()
      .waitFor();
  }

  /** Replaces what is typed in. */
  async type(text: string): Promise<void> {
    await this.input.fill(text);
  }

  /** Types with the keyboard where the cursor is, once the box has the focus. */
  async write(text: string): Promise<void> {
    await this.hasFocus();
    await this.page.keyboard.type(text);
    await until(`"${text}" to be typed`, async () => (await this.input.inputValue()).includes(text));
  }

  /** Types and confirms. */
  async enter(text: string): Promise<void> {
    await this.type(text);
    await this.accept();
  }

  async accept(): Promise<void> {
    await this.press("Enter");
  }

  /** Presses keys, one after the other, once it has the focus. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.hasFocus();
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Closes it where it is open. */
  async cancel(): Promise<void> {
    await until("the quick input to close", async () => {
      if (!(await this.widget.isVisible())) return true;
      await this.input.press("Escape", { timeout: 1_000 });
      return done(this.widget.waitFor({ state: "hidden", timeout: 3_000 }));
    });
  }

  /** Chooses the first row that shows this label. */
  async choose(label: string): Promise<void> {
    await this.items.filter({ hasText: label }).first().click();
  }

  private async hasFocus(): Promise<void> {
    await this.widget.locator(":focus").first().waitFor({ state: "attached" });
  }
}
