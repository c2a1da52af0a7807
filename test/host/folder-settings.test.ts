import assert from "node:assert/strict";
import { join } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import { Emitter } from "../../src/engine/event.ts";
import { folderOpener } from "../../src/folder.ts";
import type { FolderChange, FolderClient, FolderSettings } from "../../src/rpc/contract.ts";
import type { ServerContext } from "../../src/ui/commands/command.ts";
import { stopServer } from "../../src/ui/commands/server-commands.ts";
import { strictLogger } from "../bench/support/memory-engine.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { MemoryMemento } from "./memory-parts.ts";

describe("a folder of a window, when settings change", () => {
  const timeout = (seconds: number | undefined) =>
    vscode.workspace
      .getConfiguration("asyncagents")
      .update("server.startTimeout", seconds, vscode.ConfigurationTarget.Global);

  afterEach(() => timeout(undefined));

  it("stays connected, with its view hidden, if how long a start may take changes", async () => {
    const changes = new Emitter<readonly FolderChange[]>((error) => assert.fail(String(error)));
    const configured: FolderSettings[] = [];
    const called: string[] = [];
    const client = {
      onDidChange: changes.event,
      calls: { disconnect: async () => void called.push("disconnect") },
      configure: (settings: FolderSettings) => void configured.push(settings),
      dispose: () => undefined,
    } as unknown as FolderClient;
    const memento = new MemoryMemento();
    const open = folderOpener({
      context: { workspaceState: memento, secrets: { get: async () => undefined } } as never,
      view: { id: "hidden", visible: false, onDidChangeVisibility: new vscode.EventEmitter<boolean>().event },
      daemon: { open: () => client, isStarted: async () => true },
      showNews: () => undefined,
      logger: strictLogger,
    });
    const [place] = vscode.workspace.workspaceFolders ?? assert.fail("no folder");
    assert.ok(place);
    const folder = open(place);
    try {
      await folder.open();
      changes.fire([
        {
          type: "connection",
          state: { kind: "connected", url: "http://127.0.0.1:1", version: "1.18.33", own: true },
        },
      ]);
      assert.equal(folder.connector.state.kind, "connected");
      // What the first change leads to is asked for before the second one is sent.
      for (const seconds of [77, 78]) {
        await timeout(seconds);
        await until("the settings", () =>
          configured.some(({ server }) => server.startTimeoutMs === seconds * 1_000),
        );
      }
      assert.deepEqual(called, []);
    } finally {
      folder.dispose();
    }
  });
});

describe("a folder of a window that was deleted from the disk", () => {
  const gone = vscode.Uri.file(join(tempDir("gone"), "folder"));

  it("can't be opened, for a reason that says what to do", async () => {
    const open = folderOpener({
      context: { workspaceState: new MemoryMemento(), secrets: { get: async () => undefined } } as never,
      view: { id: "hidden", visible: false, onDidChangeVisibility: new vscode.EventEmitter<boolean>().event },
      daemon: { open: () => assert.fail("opened"), isStarted: async () => true },
      showNews: () => undefined,
      logger: strictLogger,
    });
    const folder = open({ uri: gone, name: "Gone", index: 1 });
    try {
      await assert.rejects(folder.open(), (error) => {
        assert.ok(error instanceof Refusal);
        assert.equal(
          error.message,
          "The folder \"Gone\" doesn't exist or can't be read. Restore it, or remove it from the workspace.",
        );
        return true;
      });
    } finally {
      folder.dispose();
    }
  });

  it("can have its server stopped", async () => {
    let isStopped = false;
    const folder = {
      uri: gone,
      known: { sessions: () => [] },
      connector: { state: { kind: "connected" }, stopServer: async () => void (isStopped = true) },
    };
    const daemon = { status: async () => ({ folders: [] }) };
    await stopServer({
      folders: { current: folder },
      daemon,
    } as unknown as ServerContext);
    assert.ok(isStopped);
  });
});
