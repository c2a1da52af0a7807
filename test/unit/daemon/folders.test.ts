import assert from "node:assert/strict";
import type { Shared } from "../../../src/daemon/folder.ts";
import { DaemonFolders } from "../../../src/daemon/folders.ts";
import { settings } from "../rpc/fake-host.ts";

describe("the folders of the daemon", () => {
  it("don't count one that could not be opened, so that the daemon can end", async () => {
    const shared = {
      get stateFolder(): string {
        throw new Error("There is no such folder.");
      },
    } as Shared;
    const folders = new DaemonFolders(shared);
    const counts: number[] = [];
    folders.onDidChangeCount((count) => counts.push(count));
    await assert.rejects(folders.open({ directory: "/work", settings, env: {} }), /no such folder/);
    assert.deepEqual(counts, [1, 0]);
  });
});
