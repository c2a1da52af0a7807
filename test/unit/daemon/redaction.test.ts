import assert from "node:assert/strict";
import { redactor, secretsIn } from "../../../src/daemon/redaction.ts";

describe("what diagnostics hide", () => {
  const plain = redactor([], "/home/jane");

  for (const [what, text, secret] of [
    ["a password in an address", "Connecting to http://jane:p@ss:word@127.0.0.1:4096/x.", "p@ss:word"],
    ["basic authorization", "authorization: Basic b3BlbmNvZGU6aHVudGVyMg==", "b3BlbmNvZGU6aHVudGVyMg=="],
    ["a bearer token", "Authorization: Bearer abc.def-123", "abc.def-123"],
    ["a value in JSON", '{"apiKey":"0123456789"}', "0123456789"],
    ["a value in an environment", "ACME_API_KEY=0123456789 other", "0123456789"],
    ["a value in an address", "GET /x?auth_token=0123456789&y=1", "0123456789"],
    ["a key of a model provider", "Invalid key sk-ant-api03-0123456789abcdef", "0123456789abcdef"],
    ["a token of a code host", "fatal: ghp_0123456789abcdefABCDEF", "ghp_0123456789abcdefABCDEF"],
    ["a signed token", "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "eyJzdWIiOi"],
  ] as const)
    it(what, () => {
      assert.ok(text.includes(secret));
      const redacted = plain(text);
      assert.ok(!redacted.includes(secret), redacted);
      assert.match(redacted, /\[redacted\]/);
    });

  it("secrets that are known, also within one another", () => {
    const hide = redactor(["hunter2x", "prefix-hunter2x", "short"], "/home/jane");
    assert.equal(hide("a prefix-hunter2x b hunter2x c short"), "a [redacted] b [redacted] c short");
  });

  it("the home folder", () => assert.equal(plain("Opened /home/jane/work."), "Opened ~/work."));

  it("nothing of an ordinary line", () => {
    const line =
      "2026-11-23T22:00:00.000Z [info] Task abc123: running → completed after 3 s, 2 tool calls so far.";
    assert.equal(plain(line), line);
  });

  it("finds secret variables by their names", () => {
    const env = { PATH: "/bin", ACME_API_KEY: "one", OPENCODE_SERVER_PASSWORD: "two", EMPTY_TOKEN: "" };
    assert.deepEqual(secretsIn(env), ["one", "two"]);
  });
});
