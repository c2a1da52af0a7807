import assert from "node:assert/strict";
import type { EndpointEntry } from "../../../src/bridge/endpoint-entries.ts";
import { folderEndpoints, isReachable } from "../../../src/plugin/folder-endpoints.ts";

describe("Choosing the endpoints of a folder", () => {
  const origin = { directory: "/work/a", server: new URL("http://127.0.0.1:4096/") };

  function entry(token: string, change: Partial<EndpointEntry> = {}): EndpointEntry {
    return {
      v: 1,
      directories: ["/work/a"],
      server: "http://127.0.0.1:4096",
      port: 5000,
      token,
      pid: 1,
      openedAt: 0,
      ...change,
    };
  }

  function chosen(entries: readonly EndpointEntry[], server = origin.server): string[][] {
    const { serving, elsewhere } = folderEndpoints(entries, { ...origin, server });
    return [serving, elsewhere].map((endpoints) => endpoints.map(({ token }) => token));
  }

  it("selects those that are open on exactly this folder", () => {
    const entries = [
      entry("this"),
      entry("its worktree", { directories: ["/work/b", "/work/a"] }),
      entry("another", { directories: ["/work/b"] }),
      entry("parent", { directories: ["/work"] }),
      entry("child", { directories: ["/work/a/b"] }),
      entry("similar", { directories: ["/work/ab"] }),
      entry("none", { directories: [] }),
    ];
    assert.deepEqual(chosen(entries), [["this", "its worktree"], []]);
  });

  it("puts the newest first", () => {
    const entries = [
      entry("old", { openedAt: 1 }),
      entry("new", { openedAt: 3 }),
      entry("mid", { openedAt: 2 }),
    ];
    assert.deepEqual(chosen(entries), [["new", "mid", "old"], []]);
    assert.deepEqual(
      entries.map(({ token }) => token),
      ["old", "new", "mid"],
    );
  });

  it("puts the folder's own before that of the folder that it is a worktree of", () => {
    const entries = [
      entry("main", { directories: ["/work", "/work/a"], openedAt: 3 }),
      entry("old", { openedAt: 1 }),
      entry("new", { openedAt: 2 }),
    ];
    assert.deepEqual(chosen(entries), [["new", "old", "main"], []]);
  });

  it("recognizes a server on this machine by its port, whatever its host name", () => {
    const entries = [
      entry("same", { server: "http://127.0.0.1:4096/" }),
      entry("by name", { server: "http://localhost:4096" }),
      entry("IPv6", { server: "http://[::1]:4096" }),
      entry("other port", { server: "http://127.0.0.1:4097" }),
      entry("longer port", { server: "http://127.0.0.1:40960" }),
      entry("no address", { server: "4096" }),
    ];
    assert.deepEqual(chosen(entries), [
      ["same", "by name", "IPv6"],
      ["other port", "longer port", "no address"],
    ]);
    assert.deepEqual(chosen([entry("this")], new URL("http://0.0.0.0:4096")), [["this"], []]);
  });

  it("distinguishes servers on the same port of different machines", () => {
    const entries = [entry("here"), entry("there", { server: "http://192.168.1.5:4096" })];
    assert.deepEqual(chosen(entries), [["here"], ["there"]]);
    assert.deepEqual(chosen(entries, new URL("http://192.168.1.5:4096")), [["there"], ["here"]]);
  });

  it("recognizes the address that OpenCode reports when it does not listen", () => {
    const reachable = ["http://localhost:4096/", "http://localhost:4097/", "http://127.0.0.1:4096/"].filter(
      (server) => isReachable(new URL(server)),
    );
    assert.deepEqual(reachable, ["http://localhost:4097/", "http://127.0.0.1:4096/"]);
  });

  it("knows the default port of an address without one", () => {
    const entries = [
      entry("http", { server: "http://localhost" }),
      entry("https", { server: "https://localhost" }),
    ];
    assert.deepEqual(chosen(entries, new URL("http://127.0.0.1:80")), [["http"], ["https"]]);
    assert.deepEqual(chosen(entries, new URL("https://127.0.0.1")), [["https"], ["http"]]);
  });
});
