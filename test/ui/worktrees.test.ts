import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import type { OpenCodeServer } from "../support/opencode.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const lines = (...changed: readonly string[]): string =>
  ["one", "two", "three", "four", "five", "six", "seven"]
    .map((line) => `${changed.find((one) => one.toLowerCase() === line) ?? line}\n`)
    .join("");
const edit = (filePath: string, oldString: string, newString: string): ScriptStep => ({
  tools: [
    { name: "read", args: { filePath } },
    { name: "edit", args: { filePath, oldString, newString } },
  ],
});
/** What the model does, by prompt. */
const STEPS = {
  "Number the cart": [edit("cart.txt", "two", "2"), { text: "I changed `cart.txt:2`, and kept the rest." }],
  "Shout the bill": [
    edit("bill.txt", "six", "SIX"),
    { tools: [{ name: "write", args: { filePath: "receipt.txt", content: "made\n" } }] },
  ],
  "Shout the prices": [edit("prices.txt", "two", "two!"), edit("cart.txt", "seven", "SEVEN")],
  "While you worked": [
    {
      tools: [
        { name: "read", args: { filePath: "prices.txt" } },
        {
          name: "write",
          args: { filePath: "prices.txt", content: lines().replace("two", "two of mine!") },
        },
      ],
    },
  ],
  "Shout the fourth note": [edit("notes.txt", "four", "FOUR")],
  "Shout the fifth note": [edit("notes.txt", "five", "FIVE")],
  "Shout the third note": [edit("notes.txt", "three", "THREE")],
  "Shout the menu": [edit("menu.txt", "two", "TWO"), edit("menu.txt", "six", "SIX")],
  "Prepare the shop": [{ text: "Prepared." }],
} satisfies Readonly<Record<string, readonly ScriptStep[]>>;
type Prompt = keyof typeof STEPS;
const LAUNCHED: Prompt = "Number the cart";
const CLEAN: Prompt = "Shout the bill";
const CONFLICTING: Prompt = "Shout the prices";
const BRANCHED: Prompt = "Shout the fourth note";
const DISCARDED: Prompt = "Shout the fifth note";
const IN_FOLDER: Prompt = "Shout the third note";
const SINGLE: Prompt = "Shout the menu";
const SET_UP: Prompt = "Prepare the shop";

describe("worktrees in a real editor", () => {
  let repository: TestRepository;
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;

  /** The model's steps for the prompts that are typed in this window. */
  function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
    const prompt = lastUserText(messages);
    const steps: readonly ScriptStep[] =
      Object.entries(STEPS).find(([beginning]) => prompt.startsWith(beginning))?.[1] ?? [];
    const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
    return steps[turn.filter(({ role }) => role === "assistant").length] ?? { text: "Done." };
  }

  setUp(async (start) => {
    repository = makeRepository({
      "cart.txt": lines(),
      "prices.txt": lines(),
      "bill.txt": lines(),
      "notes.txt": lines(),
      "menu.txt": lines(),
      "staged.txt": lines(),
      "dirty.txt": lines(),
      ".gitignore": "*.env\n",
    });
    repository.git("config", "user.name", "Test");
    repository.git("config", "user.email", "test@localhost");
    repository.write("staged.txt", lines("ONE"));
    repository.git("add", "staged.txt");
    repository.write("dirty.txt", lines("TWO"));
    repository.write("todo.txt", "untracked\n");
    repository.write("local.env", "ignored\n");
    model = await start.model({ fallback: answer });
    server = await start.server({ model, directory: repository.directory });
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
        "git.enabled": false,
        "window.dialogStyle": "custom",
      },
    });
  });

  const read = (path: string): string => readFileSync(join(repository.directory, path), "utf8");
  /** What bringing back must leave alone. */
  const others = (): readonly string[] => [
    repository.git("ls-files", "--stage"),
    repository.git("stash", "list"),
    repository.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
    repository.git("symbolic-ref", "HEAD"),
    ...["staged.txt", "dirty.txt", "todo.txt", "local.env"].map(read),
  ];
  const exists = (path: string): boolean => existsSync(join(repository.directory, path));
  const editorLine = (text: string): Locator =>
    workbench.page.locator(".editor-instance .view-line", {
      hasText: new RegExp(`^${text.replace(" ", "\\s")}$`),
    });
  const row = (name: string): Locator => workbench.treeItem(name);
  const button = (parentOf: Locator, name: string): Locator =>
    parentOf.getByRole("button", { name, exact: true });
  const inBox = (name: string): Locator => workbench.quickInput.widget.getByRole("button", { name });
  const option = (text: string): Locator => workbench.quickInput.items.filter({ hasText: text });
  const pictures = (name: string): Promise<void> => takeAllPictures(workbench, `worktree-${name}`);

  /** Launches a task in a worktree, up to the prompt's box. */
  async function write(prompt: Prompt): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.type(prompt);
    await inBox("Run in a Worktree").click();
    await workbench.quickInput.shows("Runs in a worktree.");
  }

  async function launch(prompt: Prompt): Promise<void> {
    await write(prompt);
    await workbench.quickInput.accept();
    await row(prompt).and(workbench.spoken("completed")).waitFor();
  }

  /** The directory of a task's worktree; the name of that begins like the prompt. */
  function worktreeOf(prompt: Prompt): string {
    const all = `${repository.directory}.worktrees`;
    const name = readdirSync(all).find((one) => one.startsWith(prompt.toLowerCase().replaceAll(" ", "-")));
    return join(all, name ?? assert.fail(`"${prompt}" has no worktree`));
  }

  /** Chooses an entry of a task's menu. */
  const act = (name: string, entry: string): Promise<void> => workbench.contextMenu(row(name), entry);
  const open = async (name: string, choice: string): Promise<void> => {
    await act(name, "Open Worktree…");
    await workbench.quickInput.choose(choice);
  };

  it("launches a task with the button in the prompt's box, and marks its row", async () => {
    const before = others();
    await write(LAUNCHED);
    await inBox("Run in the Folder").waitFor();
    assert.equal(await workbench.quickInput.input.inputValue(), LAUNCHED);
    await pictures("launch");
    await workbench.quickInput.accept();
    await row(LAUNCHED).and(workbench.spoken("completed")).waitFor();
    await row(LAUNCHED).and(workbench.spoken("(worktree)")).waitFor();
    await workbench.tooltipOf(row(LAUNCHED), `${repository.directory}.worktrees`);
    await workbench.screenshot("worktree-tooltip-dark");
    await workbench.page.mouse.move(0, 0);
    const entries = await workbench.menuEntries(row(LAUNCHED));
    for (const entry of ["Bring Back…", "Discard Worktree…", "Open Worktree…"])
      assert.ok(entries.includes(entry), entries.join(", "));
    assert.deepEqual(others(), before);
    assert.equal(read("cart.txt"), lines());
  });

  it("opens the worktree's file from a link in the panel", async () => {
    await workbench.clickRow(row(LAUNCHED));
    const panel = workbench.webviewFrame();
    await panel.getByText("I changed").waitFor();
    await panel.getByRole("heading", { name: "(worktree)" }).waitFor();
    await pictures("panel");
    await panel.getByRole("button", { name: "Bring Back…" }).click();
    await workbench.quickInput.shows("Bring Back: 1 file without conflicts");
    await workbench.quickInput.cancel();
    await panel.getByRole("link", { name: "cart.txt:2" }).or(panel.getByText("cart.txt:2")).first().click();
    await workbench.tab("cart.txt").waitFor();
    await editorLine("2").waitFor();
    await workbench.runCommand("View: Close All Editors");
  });

  it("shows the changes with the worktree's files, and reverts there", async () => {
    const file = join(worktreeOf(LAUNCHED), "cart.txt");
    await act(LAUNCHED, "Show Changes");
    await workbench.tab(`cart.txt (Changes: ${LAUNCHED})`).waitFor();
    assert.equal(await row("cart.txt").getAttribute("aria-label"), "cart.txt edited");
    await editorLine("2").waitFor();
    await pictures("changes");
    await workbench.page.locator(".editor-actions").getByRole("button", { name: "Revert Change" }).click();
    const told = workbench.notification("Reverted cart.txt.");
    await told.waitFor();
    assert.equal(readFileSync(file, "utf8"), lines());
    await button(told, "Undo").click();
    await until("the undo", () => readFileSync(file, "utf8") === lines("TWO").replace("TWO", "2"));
    await workbench.runCommand("View: Close All Editors");
  });

  it("offers to clean up worktrees if the folder already has all changes", async () => {
    repository.write("cart.txt", readFileSync(join(worktreeOf(LAUNCHED), "cart.txt"), "utf8"));
    await act(LAUNCHED, "Bring Back…");
    const told = workbench.notification(`The folder already has all changes by "${LAUNCHED}".`);
    await told.waitFor();
    await workbench.screenshot("worktree-nothing-to-bring-back-dark");
    await button(told, "Clean Up Worktrees…").click();
    await workbench.quickInput.shows("Select the worktrees to remove");
    await option(LAUNCHED).or(option("number-the-cart")).first().waitFor();
    repository.write("cart.txt", lines());
  });

  it("brings the work back into a folder with changes of its own, and undoes that", async () => {
    await launch(CLEAN);
    const worktree = worktreeOf(CLEAN);
    const before = [...others(), read("bill.txt"), read("prices.txt")];
    await workbench.openFile("bill.txt");
    await act(CLEAN, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 2 files without conflicts");
    await option("receipt.txt").waitFor();
    await pictures("bring-back");
    await workbench.quickInput.accept();
    const told = workbench.notification(`Brought back 2 files from "${CLEAN}".`);
    await told.waitFor();
    assert.equal(read("bill.txt"), lines("SIX"));
    assert.equal(read("receipt.txt"), "made\n");
    await editorLine("SIX").waitFor();
    await row(CLEAN).and(workbench.spoken("(brought back)")).waitFor();
    await until("the worktree to go", () => !existsSync(worktree));
    await pictures("brought-back");
    await workbench.showNotifications();
    await button(told, "Undo").click();
    await until("the undo", () => read("bill.txt") === lines() && !exists("receipt.txt"));
    assert.deepEqual([...others(), read("bill.txt"), read("prices.txt")], before);
    await editorLine("six").waitFor();
    await row(CLEAN).and(workbench.spoken("(worktree)")).waitFor();
    await until("the worktree to be there again", () => existsSync(join(worktree, "receipt.txt")));
  });

  it("brings back chosen files by keyboard", async () => {
    await workbench.clickRow(row(CLEAN));
    await workbench.tab(CLEAN).waitFor();
    await workbench.runCommand("Async Agents: Bring Back…");
    await workbench.quickInput.shows("Select a task");
    await workbench.quickInput.type(CLEAN);
    await workbench.quickInput.accept();
    await workbench.quickInput.shows("Bring Back: 2 files without conflicts");
    await option("receipt.txt").waitFor();
    // Unchecks the first file.
    await workbench.quickInput.press("ArrowDown", "Space", "Enter");
    const told = workbench.notification(`Brought back 1 file from "${CLEAN}".`);
    await told.waitFor();
    assert.equal(read("bill.txt"), lines());
    assert.equal(read("receipt.txt"), "made\n");
    await row(CLEAN).and(workbench.spoken("(worktree)")).waitFor();
    await act(CLEAN, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 1 file without conflicts");
    assert.equal(await option("receipt.txt").count(), 0);
  });

  it("takes single changes of a file in the diff editor, and then brings back the others", async () => {
    await launch(SINGLE);
    await act(SINGLE, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 1 file without conflicts");
    await option("menu.txt").waitFor();
    await workbench.quickInput.press("ArrowDown");
    await pictures("single-changes-button");
    await button(option("menu.txt"), "Take Single Changes…").click();
    await workbench.tab("menu.txt (Task ↔ Folder)").waitFor();
    await editorLine("TWO").waitFor();
    await pictures("single-changes");
    await workbench.page.locator(".monaco-diff-editor .gutter .action-label").first().click();
    await workbench.runCommand("File: Save");
    await until("the change", () => read("menu.txt") === lines("TWO"));
    await workbench.runCommand("View: Close All Editors");
    await act(SINGLE, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 1 file without conflicts");
    await option("menu.txt").filter({ hasText: "+1 −1" }).waitFor();
    await workbench.quickInput.accept();
    await workbench.notification(`Brought back 1 file from "${SINGLE}".`).waitFor();
    assert.equal(read("menu.txt"), lines("TWO", "SIX"));
  });

  it("[ISO-5] says which files conflict, and asks what to do with each", async () => {
    await launch(CONFLICTING);
    repository.write("prices.txt", lines().replace("two", "two of mine"));
    const mine = read("prices.txt");
    await act(CONFLICTING, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 1 file without conflicts, 1 in conflict");
    const conflict = option("prices.txt");
    await conflict.filter({ hasText: "Conflict: you and the agent changed the same part" }).waitFor();
    await pictures("conflict");
    await conflict.click();
    await workbench.quickInput.accept();
    await workbench.quickInput.shows("Conflict: prices.txt");
    await pictures("conflict-choices");
    for (const choice of ["Keep My File", "Take the Agent's File"]) await option(choice).waitFor();
    await workbench.quickInput.choose("Write Conflict Markers");
    const told = workbench.notification("Brought back");
    await told.waitFor();
    assert.match(
      read("prices.txt"),
      /^<<<<<<< Your changes\ntwo of mine\n=======\ntwo!\n>>>>>>> Changes by the agent$/m,
    );
    assert.equal(read("cart.txt"), lines("SEVEN"));
    await button(told, "Undo").click();
    await until("the undo", () => read("cart.txt") === lines() && read("prices.txt") === mine);
    await row(CONFLICTING).and(workbench.spoken("(worktree)")).waitFor();
    await told.waitFor({ state: "detached" });
  });

  it("[ISO-5] lets the agent merge, and then brings both back", async () => {
    await act(CONFLICTING, "Bring Back…");
    await workbench.quickInput.shows("1 in conflict");
    await inBox("Let the Agent Merge").click();
    await row(CONFLICTING).and(workbench.spoken("(resumed)")).and(workbench.spoken("completed")).waitFor();
    await act(CONFLICTING, "Bring Back…");
    await workbench.quickInput.shows("Bring Back: 2 files without conflicts");
    await option("prices.txt").waitFor();
    await workbench.quickInput.accept();
    await workbench.notification(`Brought back 2 files from "${CONFLICTING}".`).waitFor();
    assert.equal(read("prices.txt"), lines().replace("two", "two of mine!"));
  });

  it("[ISO-6] creates a branch, and the folder stays on its own", async () => {
    await launch(BRANCHED);
    const worktree = worktreeOf(BRANCHED);
    const [head] = [repository.git("symbolic-ref", "HEAD")];
    await act(BRANCHED, "Create Branch from Worktree…");
    await workbench.quickInput.shows("Your own branch stays checked out.");
    await workbench.quickInput.type("louder notes");
    await workbench.quickInput.shows("This isn't a valid branch name.");
    await pictures("branch");
    await workbench.quickInput.enter("louder-notes");
    await workbench.notification(`Created the branch louder-notes from "${BRANCHED}".`).waitFor();
    assert.equal(repository.git("show", "louder-notes:notes.txt"), lines("FOUR"));
    assert.equal(repository.git("symbolic-ref", "HEAD"), head);
    assert.equal(read("notes.txt"), lines());
    await row(BRANCHED).and(workbench.spoken("(branch created)")).waitFor();
    await until("the worktree to go", () => !existsSync(worktree));
    const entries = await workbench.menuEntries(row(BRANCHED));
    assert.ok(!entries.includes("Bring Back…"), entries.join(", "));
    assert.ok(entries.includes("Open Worktree…"), entries.join(", "));
  });

  it("[ISO-6] discards the work after listing it, and undoes that", async () => {
    await launch(DISCARDED);
    const worktree = worktreeOf(DISCARDED);
    await act(DISCARDED, "Discard Worktree…");
    const asked = workbench.dialog(`Discard the work of "${DISCARDED}"?`);
    await asked.getByText("notes.txt +1 −1").waitFor();
    await pictures("discard");
    await button(asked, "Discard").click();
    const told = workbench.notification(`Discarded the work of "${DISCARDED}".`);
    await told.waitFor();
    assert.ok(!existsSync(worktree));
    await row(DISCARDED).and(workbench.spoken("(discarded)")).waitFor();
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await button(told, "Undo").click();
    await row(DISCARDED).and(workbench.spoken("(worktree)")).waitFor();
    assert.equal(readFileSync(join(worktree, "notes.txt"), "utf8"), lines("FIVE"));
  });

  it("opens a worktree in a terminal and in a new window, and copies its path", async () => {
    const worktree = worktreeOf(DISCARDED);
    await act(DISCARDED, "Open Worktree…");
    await workbench.quickInput.shows("Select what to open");
    await pictures("open");
    await workbench.quickInput.choose("Copy Path");
    await until(
      "the path",
      async () => (await workbench.page.evaluate("navigator.clipboard.readText()")) === worktree,
    );
    await open(DISCARDED, "Open Terminal");
    const terminal = workbench.page.locator(".terminal-wrapper.active .xterm");
    await terminal.waitFor();
    const isThere = (): boolean =>
      readdirSync("/proc").some((pid) => {
        try {
          return readlinkSync(`/proc/${pid}/cwd`) === worktree;
        } catch {
          return false;
        }
      });
    await until("a shell in the worktree", isThere);
    await workbench.runCommand("Terminal: Kill the Active Terminal Instance");
    await terminal.waitFor({ state: "hidden" });
    const opening = workbench.page.context().waitForEvent("page");
    await open(DISCARDED, "Open in New Window");
    const page = await opening;
    assert.match(decodeURIComponent(page.url()), new RegExp(`folder=${worktree}`));
    await page.close();
  });

  it("[ISO-7] offers to make a worktree again that is gone, and resumes the task there", async () => {
    const worktree = worktreeOf(DISCARDED);
    rmSync(worktree, { recursive: true });
    await act(DISCARDED, "Resume");
    await workbench.quickInput.shows("Enter a follow-up.");
    await workbench.quickInput.enter("Check it.");
    const asked = workbench.dialog(`The worktree of "${DISCARDED}" no longer exists.`);
    await asked.waitFor();
    await pictures("gone");
    await button(asked, "Recreate Worktree").click();
    await row(DISCARDED).and(workbench.spoken("(resumed)")).and(workbench.spoken("completed")).waitFor();
    assert.equal(readFileSync(join(worktree, "notes.txt"), "utf8"), lines("FIVE"));
  });

  it("lists the worktrees with age, size and state, and removes chosen ones after listing their work", async () => {
    const worktree = worktreeOf(DISCARDED);
    await workbench.runCommand("Async Agents: Clean Up Worktrees…");
    await workbench.quickInput.shows("Select the worktrees to remove");
    const item = option(DISCARDED);
    await item.filter({ hasText: /ended · .* · 1 MB/ }).waitFor();
    await item.filter({ hasText: "1 file changed" }).waitFor();
    await pictures("clean-up");
    await item.click();
    await workbench.quickInput.accept();
    const asked = workbench.dialog("Remove worktrees that contain changes?");
    await asked.getByText(`${DISCARDED}: 1 file changed`).waitFor();
    await pictures("clean-up-question");
    assert.ok(existsSync(worktree));
    await button(asked, "Remove").click();
    await until("the worktree to go", () => !existsSync(worktree));
  });

  it("says what stands in the way before anything starts, and runs in the folder instead", async () => {
    const merging = join(repository.directory, ".git", "MERGE_HEAD");
    writeFileSync(merging, repository.git("rev-parse", "HEAD"));
    await write(IN_FOLDER);
    await workbench.quickInput.accept();
    const asked = workbench.dialog("merge");
    await asked.waitFor();
    await pictures("obstacle");
    await button(asked, "Run in the Folder Instead").click();
    await row(IN_FOLDER).and(workbench.spoken("completed")).waitFor();
    rmSync(merging);
    assert.equal(await row(IN_FOLDER).and(workbench.spoken("(worktree)")).count(), 0);
    assert.equal(read("notes.txt"), lines("THREE"));
  });

  it("makes a worktree again that was removed", async () => {
    await open(DISCARDED, "Recreate Worktree");
    const told = workbench.notification("Recreated the worktree: ");
    await told.waitFor();
    const directory = /: (\S+)/.exec(await told.innerText())?.[1] ?? "";
    assert.equal(readFileSync(join(directory, "notes.txt"), "utf8"), lines("FIVE"));
  });

  describe("with a setup command", () => {
    it("[ISO-2] asks before the first run, and shows what a failed command printed", async () => {
      await workbench.changeSettings({ "asyncagents.isolation.setup": "echo No registry; exit 7" });
      await write(SET_UP);
      await workbench.quickInput.accept();
      const asked = workbench.dialog("Allow this command to run in each new worktree of shop?");
      await asked.getByText("echo No registry; exit 7").waitFor();
      await pictures("setup-question");
      await button(asked, "Allow").click();
      await row(SET_UP).and(workbench.spoken("failed")).waitFor();
      await open(SET_UP, "Show Setup Output");
      await workbench.tab(`Setup of ${SET_UP}.log`).waitFor();
      await editorLine("No registry").waitFor();
      await pictures("setup-output");
      await workbench.runCommand("View: Close All Editors");
    });
  });
});
