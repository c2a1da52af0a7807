import assert from "node:assert/strict";
import { until } from "../support/wait.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

/** Every other test leaves the window like a test that stops halfway; the next one must still start tidy. */
describe("after a test that left the window in disorder", () => {
  let workbench: Workbench;

  setUp(async (start) => {
    workbench = await start.window({ settings: { "files.autoSave": "off" }, shows: null });
  });

  async function newFile(text: string): Promise<void> {
    const before = await tabs();
    await workbench.runCommand("File: New Untitled Text File");
    await until("its editor", async () => (await tabs()) > before);
    await workbench.write(text);
    await workbench.page.locator(".tab.dirty", { hasText: text }).waitFor();
  }

  const tabs = (): Promise<number> => workbench.page.locator(".tabs-container .tab").count();

  async function isTidy(): Promise<void> {
    const { page, quickInput } = workbench;
    assert.equal(await tabs(), 0);
    assert.equal(await page.locator(".monaco-dialog-box").count(), 0);
    assert.equal(await workbench.notification("").count(), 0);
    assert.ok(!(await quickInput.widget.isVisible()));
    assert.equal(await page.locator(".monaco-workbench.vs-dark").count(), 1);
    assert.deepEqual(page.viewportSize(), { width: 1280, height: 800 });
    // Keys reach the quick input, and not what had the focus before.
    await workbench.press("F1");
    await quickInput.write("File: New");
    await quickInput.cancel();
    assert.equal(await tabs(), 0);
  }

  it("unsaved editors are left, with a dialog that asks whether to save one", async () => {
    await newFile("Left behind");
    await newFile("About to be closed");
    await workbench.runCommand("View: Close Editor");
    await workbench.dialog("save the changes").waitFor();
  });

  it("the editors are gone without being saved", isTidy);

  it("a quick input is left over a notification, with another window size and theme", async () => {
    await workbench.runCommand("Async Agents: Configure Agent Tools in OpenCode");
    await workbench.quickInput.choose("Remove from This Folder");
    await workbench.notification("The agent tools aren't in this configuration.").waitFor();
    await workbench.page.setViewportSize({ width: 700, height: 500 });
    await workbench.page.emulateMedia({ forcedColors: "active" });
    await workbench.page.locator(".monaco-workbench.hc-black").waitFor();
    await workbench.press("F1");
    await workbench.quickInput.write("half a com");
  });

  it("both are gone, and size and theme are reset", isTidy);

  it("a changed setting is left, and an open menu", async () => {
    await workbench.changeSettings({ "workbench.activityBar.location": "hidden" });
    await workbench.page.locator(".part.activitybar").waitFor({ state: "hidden" });
    await workbench.openContextMenu(workbench.statusBarItem("").first());
  });

  it("the setting is reset, and the menu closed", async () => {
    await workbench.page.locator(".part.activitybar").waitFor();
    assert.equal(await workbench.page.locator(".monaco-menu").count(), 0);
    await isTidy();
  });
});
