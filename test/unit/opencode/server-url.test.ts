import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import { parseServerUrl, withoutPassword } from "../../../src/opencode/server-url.ts";

describe("Server URL", () => {
  for (const [text, url] of [
    ["http://127.0.0.1:4096", "http://127.0.0.1:4096"],
    [" http://localhost:4096/ ", "http://localhost:4096"],
    ["http://127.8.9.1", "http://127.8.9.1"],
    ["http://[::1]:80/", "http://[::1]"],
    ["http://2130706433:4096", "http://127.0.0.1:4096"],
  ] as const)
    it(`accepts ${text}`, () => {
      const parsed = parseServerUrl(text);
      assert.ok("url" in parsed);
      assert.equal(parsed.url, url);
    });

  it("extracts user name and password from the URL", () => {
    assert.deepEqual(parseServerUrl("http://me:a%40b@127.0.0.1:1"), {
      url: "http://127.0.0.1:1",
      username: "me",
      password: "a@b",
    });
  });

  for (const [text, kept] of [
    ["http://127.0.0.1:4096", "http://127.0.0.1:4096/"],
    [" http://me@localhost/ ", "http://me@localhost/"],
    ["http://me:secret@127.0.0.1:1", "http://me@127.0.0.1:1/"],
    ["http://:secret@127.0.0.1:1/", "http://127.0.0.1:1/"],
    ["me:secret@127.0.0.1:1", "invalid"],
    ["http://me:secret@127.0.0.1:1/session", "invalid"],
  ] as const)
    it(`keeps no password of ${text}`, () => {
      assert.equal(withoutPassword(text), kept);
      assert.equal(withoutPassword(kept), kept);
    });

  for (const text of [
    "4096",
    "nonsense",
    "ftp://127.0.0.1",
    "http://192.168.0.1:4096",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "http://0.0.0.0:4096",
    "http://127.0.0.1:4096/session",
    "http://127.0.0.1:4096/?directory=x",
    "http://:%@127.0.0.1",
  ])
    it(`refuses ${text}`, () => {
      const parsed = parseServerUrl(text);
      assert.ok("code" in parsed);
      assert.equal(parsed.code, "bad-url");
      assert.match(english(parsed.remedy), /asyncagents\.server\.url/);
    });
});
