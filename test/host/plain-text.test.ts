import assert from "node:assert/strict";
import * as vscode from "vscode";
import { ConnectionError } from "../../src/engine/connection.ts";
import { Refusal } from "../../src/engine/errors.ts";
import { ServerFailure } from "../../src/engine/ports.ts";
import { showChanges } from "../../src/ui/changes/changes-view.ts";
import { humanMessage } from "../../src/ui/messages.ts";
import { askText } from "../../src/ui/quick-input.ts";
import type { Subagent } from "../../src/engine/subagent.ts";
import type { Task } from "../../src/engine/task.ts";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { connect } from "../../src/ui/commands/set-up.ts";
import { openInTerminal } from "../../src/ui/commands/row-commands.ts";
import type { Tasks } from "../../src/ui/folders/all-tasks.ts";
import type { Folder } from "../../src/ui/folders/folders.ts";
import { OutputPanels, type PanelParts } from "../../src/ui/output/output-panels.ts";
import { systemClock } from "../../src/rpc/clock.ts";
import { EndNotifications, type NotificationContext } from "../../src/ui/task-notifications.ts";
import { shortTitle } from "../../src/ui/tree/titles.ts";
import { batchLabel, childItem, folderItem } from "../../src/ui/tree/items.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const NEVER = () => ({ dispose: () => undefined });
const NO_TOKENS = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
const HIDDEN = /[\p{Cc}\p{Bidi_Control}]/u;
const LINK = "[Fix it](command:workbench.action.quit)";

/** Contains a right-to-left override, which reverses the name's end, and a bell character. */
const TURNED = "Tidy \u202eexe.txt\u0007";
const PLAIN = "Tidy exe.txt";

describe("text from agents and users in titles", () => {
  const task = { ...record({ description: TURNED, agent: "gen\u202eeral" }), cost: 0 } as unknown as Task;
  const around = {
    now: 0,
    isParent: false,
    descendants: { waiting: 0, running: 0 },
    isUnread: false,
    place: undefined,
  };

  it("has no hidden or bidirectional characters in the rows of the tree", () => {
    const title = shortTitle(task.description);
    const item = childItem({ ...task, tokens: NO_TOKENS }, { ...around, title });
    assert.equal(item.label, PLAIN);
    assert.doesNotMatch(`${item.description as string}${item.accessibilityInformation?.label}`, HIDDEN);
    assert.equal(batchLabel([task, task]), PLAIN);
    const folder = {
      uri: vscode.Uri.file("/x/\u202ey"),
      name: TURNED,
      session: { id: undefined, session: { title: TURNED } },
      connector: { state: { kind: "connected", own: false } },
    } as unknown as Folder;
    const known = { children: () => [], unreadable: () => [] } as unknown as Tasks;
    const row = folderItem(folder, known, { showsCleared: false }, false);
    assert.equal(row.label, PLAIN);
    assert.doesNotMatch(`${row.description as string}${row.tooltip as string}`, HIDDEN);
  });

  it("has no hidden or bidirectional characters in the tab of the output", async () => {
    const parts = {
      known: {
        child: () => task,
        onDidChange: NEVER,
        onDidChangeSubagent: NEVER,
        onDidChangeRequests: NEVER,
        openRequests: () => [],
      },
      folders: { of: () => undefined, all: [], onDidChange: NEVER, follow: NEVER },
      logger: SILENT,
    } as unknown as PanelParts;
    const panels = new OutputPanels(vscode.Uri.file("/"), parts);
    panels.show("ses_1");
    try {
      const label = await until("the tab", () => vscode.window.tabGroups.activeTabGroup.activeTab?.label);
      assert.equal(label, PLAIN);
    } finally {
      panels.dispose();
    }
  });

  it("has no hidden or bidirectional characters in the title of a task's terminal", async () => {
    const { createTerminal } = vscode.window;
    const names: (string | undefined)[] = [];
    vscode.window.createTerminal = ((options: vscode.TerminalOptions) => {
      names.push(options.name);
      return { show: () => undefined };
    }) as typeof createTerminal;
    const call = { executable: "opencode", args: ["attach"], directory: "/", env: {} };
    const folder = {
      connector: { ensureConnected: async () => undefined },
      calls: { attachCommand: async () => call },
    };
    const folders = { opened: Promise.resolve(), all: [folder], current: folder, of: () => folder };
    try {
      await openInTerminal(
        {
          folders,
          known: { folderOf: () => folder, find: () => task, child: () => task },
        } as unknown as CommandContext,
        task.id,
      );
    } finally {
      vscode.window.createTerminal = createTerminal;
    }
    assert.deepEqual(names, [`OpenCode: ${PLAIN}`]);
  });

  it("has no hidden characters and no links in notifications about an end and a connection", async () => {
    const told: string[] = [];
    const { showInformationMessage } = vscode.window;
    vscode.window.showInformationMessage = async (message: string) => void told.push(message);
    const missing = new ConnectionError({ code: "not-found", message: "", remedy: "" });
    const connector = {
      state: { kind: "failed", version: `1.0 ${LINK}\u202e` },
      connectAsking: async () => {
        if (connector.state.kind === "connected") return;
        connector.state.kind = "connected";
        throw missing;
      },
    };
    try {
      const ended: Task = { ...task, description: `${LINK}\u202e`, status: "completed" };
      const wanted = {
        known: { get: () => ended, active: () => [], list: () => [] },
        clock: systemClock,
        notifyUser: () => "always",
        isShown: () => false,
        isListShown: () => false,
      } as unknown as NotificationContext;
      new EndNotifications(wanted).show(ended, []);
      await connect(
        {
          folders: { opened: Promise.resolve(), current: { connector } },
          settings: { server: () => ({}) },
          daemon: { findExecutable: async () => `/bin/${LINK}` },
        } as unknown as CommandContext,
        undefined,
      );
      await until("the connection", () => told.length === 2);
    } finally {
      vscode.window.showInformationMessage = showInformationMessage;
    }
    for (const text of told) assert.doesNotMatch(text, HIDDEN);
    assert.doesNotMatch(told.join(), /\]\(command:/);
  });
});

describe("agents' text where the editor turns Markdown links into links", () => {
  it("makes no link in an error that quotes it", () => {
    const errors = [
      new Refusal("session-gone", `Task "${LINK}" is gone.`),
      new ServerFailure("POST /session", "refused", LINK),
    ];
    for (const error of errors) assert.match(humanMessage(error), /\[Fix it\] \(command:/);
  });

  it("makes no link in the message about a task without changes", async () => {
    const told: string[] = [];
    const { showInformationMessage } = vscode.window;
    vscode.window.showInformationMessage = async (message: string) => void told.push(message);
    try {
      const child = { description: LINK, status: "idle" } as Subagent;
      await showChanges(child, { files: [], hasSnapshots: true });
    } finally {
      vscode.window.showInformationMessage = showInformationMessage;
    }
    assert.match(told.join(), /^"\[Fix it\] \(command:/);
  });

  it("makes no link in the prompt of the box in which a question is answered", async () => {
    const { createInputBox } = vscode.window;
    const boxes: vscode.InputBox[] = [];
    vscode.window.createInputBox = () => {
      const box = createInputBox();
      boxes.push(box);
      return box;
    };
    const over = new AbortController();
    try {
      const question = { title: "Question", placeholder: "", text: "", validate: () => undefined };
      const answered = askText({ ...question, prompt: LINK, over: over.signal });
      assert.match(boxes[0]?.prompt ?? "", /\[Fix it\] \(command:/);
      over.abort();
      assert.equal(await answered, undefined);
    } finally {
      vscode.window.createInputBox = createInputBox;
    }
  });
});
