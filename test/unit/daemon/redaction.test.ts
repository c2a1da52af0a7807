import assert from "node:assert/strict";
import { redactor, secretsIn, secretsInUrl } from "../../../src/daemon/redaction.ts";

describe("what diagnostics hide", () => {
  const plain = redactor([], "/home/jane");

  for (const [what, text, secret] of [
    ["a password in an address", "Connecting to http://jane:p@ss:word@127.0.0.1:4096/x.", "p@ss:word"],
    ["a password with a quote", "Connecting to http://opencode:it's-secret@127.0.0.1:4096", "it's-secret"],
    ["a password without a scheme", "opencode:hunter2secret@127.0.0.1:4096 isn't a URL", "hunter2secret"],
    ["a password with a slash", "http://opencode:pa/ss-long@localhost:4096 isn't a URL", "pa/ss-long"],
    ["basic authorization", "authorization: Basic b3BlbmNvZGU6aHVudGVyMg==", "b3BlbmNvZGU6aHVudGVyMg=="],
    ["a bearer token", "Authorization: Bearer abc.def-123", "abc.def-123"],
    ["another authorization", "Authorization: Token abc.def-123", "abc.def-123"],
    ["an authorization without a kind", '{"authorization":"abc.def-123"}', "abc.def-123"],
    ["a value in quoted JSON", '"{\\"token\\":\\"01234\\\\56789\\"}"', "56789"],
    ["a secret access key", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "wJalrXUtnFEMI"],
    ["a secret key", "SECRET_KEY=0123456789", "0123456789"],
    ["a private key", "private-key: 0123456789", "0123456789"],
    ["a key in camel case", "accessKey=0123456789", "0123456789"],
    ["a key of a service", "OPENAI_KEY=0123456789", "0123456789"],
    ["a passphrase", "passphrase=0123456789", "0123456789"],
    ["a value in JSON", '{"apiKey":"0123456789"}', "0123456789"],
    ["a value in an environment", "ACME_API_KEY=0123456789 other", "0123456789"],
    ["a value in an address", "GET /x?auth_token=0123456789&y=1", "0123456789"],
    ["a key of a model provider", "Invalid key sk-ant-api03-0123456789abcdef", "0123456789abcdef"],
    ["a token of a code host", "fatal: ghp_0123456789abcdefABCDEF", "ghp_0123456789abcdefABCDEF"],
    ["another token of a code host", "fatal: github_pat_11ABCDEFG0123456789", "11ABCDEFG0123456789"],
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

  it("the home folder on Windows, however a program writes it", () => {
    const hide = redactor([], String.raw`C:\Users\jane`);
    const written = [
      String.raw`at x (c:\Users\jane\a.cjs)`,
      "'C:/Users/jane/a'",
      String.raw`"C:\\Users\\jane\\a"`,
    ];
    assert.deepEqual(written.map(hide), [String.raw`at x (~\a.cjs)`, "'~/a'", String.raw`"~\\a"`]);
  });

  it("nothing of ordinary lines", () => {
    for (const line of [
      "2026-11-23T22:00:00.000Z [info] Task abc123: running → completed after 3 s, 2 tool calls so far.",
      "The token counter ended; authorization is required. Press a key: any.",
      "Couldn't run opencode --dangerously-skip-permissions in /srv/ghost-written-tests.",
      "Loaded npm:@scope/package@1.2.3 from https://registry.npmjs.org/@scope/package.",
    ])
      assert.equal(plain(line), line);
  });

  it("finds the password in an address, however it is written", () => {
    const found = [
      "http://opencode:it's-secret@127.0.0.1:4096",
      "opencode:hunter2secret@127.0.0.1:4096",
      " http://:pa/ss@long@localhost:4096",
      "http://a:p%40ss%20word@localhost:4096",
      "http://a:100%@localhost:4096",
      "http://jane@localhost:4096",
      "http://127.0.0.1:4096",
    ].map(secretsInUrl);
    assert.deepEqual(found, [
      ["it's-secret"],
      ["hunter2secret"],
      ["pa/ss@long"],
      ["p%40ss%20word", "p@ss word"],
      ["100%"],
      [],
      [],
    ]);
  });

  it("finds secret variables by their names", () => {
    const env = { PATH: "/bin", ACME_API_KEY: "one", OPENCODE_SERVER_PASSWORD: "two", EMPTY_TOKEN: "" };
    assert.deepEqual(secretsIn(env), ["one", "two"]);
  });
});
