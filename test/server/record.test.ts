import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { redacted, shapeOf } from "../record/redact.ts";
import { Recorder, type Target } from "../record/recorder.ts";
import { startOpenCode } from "../support/opencode.ts";
import { startScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { fakeOpenCode2 } from "./desk.ts";

interface Line {
  readonly scene?: string;
  readonly call?: { readonly method: string; readonly path: string };
  readonly status?: number;
  readonly answer?: unknown;
  readonly event?: { readonly type: string };
  readonly note?: string;
}

async function recordingOf(target: Target): Promise<{ text: string; lines: readonly Line[] }> {
  const file = join(tempDir(), "recording.jsonl");
  await new Recorder(target, { file, turnMs: 40_000, crashMs: 500 }).record();
  const text = readFileSync(file, "utf8");
  return {
    text,
    lines: text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line),
  };
}

/** The lines of each scene, by its name; those before the first one have no name. */
function byScene(lines: readonly Line[]): ReadonlyMap<string, readonly Line[]> {
  const scenes = new Map<string, Line[]>();
  let current = "";
  for (const line of lines) {
    current = line.scene ?? current;
    scenes.set(current, [...(scenes.get(current) ?? []), line]);
  }
  return scenes;
}

describe("The recorder", () => {
  it("records how a server answers, and the events of each scene until its end", async () => {
    const model = await startScriptedModel();
    const server = await startOpenCode({ model, password: "s3cret-password" });
    try {
      const crash = async (): Promise<void> => {
        await server.kill();
        await server.restart();
      };
      const { url, password, directory } = server;
      const { text, lines } = await recordingOf({ url, password, directory, crash });
      const scenes = byScene(lines);
      const health = lines.find(({ call }) => call?.path === "/global/health");
      assert.equal((health?.answer as { healthy?: boolean }).healthy, true);
      assert.deepEqual(
        [...scenes.keys()],
        ["", "text", "tool", "permission", "question", "interrupt", "crash"],
      );
      const typesIn = (scene: string): readonly string[] =>
        scenes.get(scene)?.flatMap(({ event }) => event?.type ?? []) ?? [];
      const callsIn = (scene: string): readonly string[] =>
        scenes
          .get(scene)
          ?.flatMap(({ call, status }) =>
            call ? `${call.method} ${call.path.split("/").at(-1)} ${status}` : [],
          ) ?? [];
      const notesIn = (scene: string): readonly string[] =>
        scenes.get(scene)?.flatMap(({ note }) => note ?? []) ?? [];
      for (const scene of ["text", "tool", "permission", "question", "interrupt"]) {
        assert.ok(typesIn(scene).includes("session.idle"), scene);
        assert.deepEqual(notesIn(scene), ["The turn has ended."]);
        assert.ok(callsIn(scene).includes("GET message 200"), scene);
      }
      assert.ok(typesIn("permission").includes("permission.replied"));
      assert.ok(typesIn("question").includes("question.replied"));
      assert.ok(callsIn("interrupt").includes("POST abort 200"));
      assert.deepEqual(notesIn("crash"), [
        "The server was killed and started again.",
        "Nothing more came after the crash.",
      ]);
      assert.ok(callsIn("crash").includes("GET message 200"));
      for (const secret of ["s3cret-password", directory, url]) assert.ok(!text.includes(secret), secret);
    } finally {
      await server.stop();
      await model.stop();
    }
  });

  it("records a server of version 2 as far as it answers", async () => {
    const program = spawn(process.execPath, [fakeOpenCode2, "serve", "--port", "0"], {
      env: { OPENCODE_PASSWORD: "secret" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [output] = (await once(program.stdout, "data")) as [Buffer];
      const url = /http:\S+/.exec(output.toString())?.[0] ?? assert.fail();
      const { lines } = await recordingOf({ url, password: "secret", directory: tempDir("work") });
      const [info] = lines;
      assert.equal((info?.answer as { version?: string }).version, "2.3.2");
      assert.ok(lines.some(({ call, status }) => call?.path === "/openapi.json" && status === 200));
      assert.deepEqual(
        lines.flatMap(({ note }) => note ?? []),
        Array<string>(5).fill("No session was created."),
      );
    } finally {
      program.kill();
    }
  });

  it("refuses what is no OpenCode server", async () => {
    const nobody = { url: "http://127.0.0.1:9", password: undefined, directory: tempDir("work") };
    await assert.rejects(recordingOf(nobody), /no OpenCode server, or the password is wrong/);
  });

  it("replaces secrets and places, and keeps counts of tokens", () => {
    const value = { apiKey: "abc", tokens: { input: 3 }, path: join(homedir(), "x"), at: "/work/a" };
    assert.equal(
      redacted(JSON.stringify(value), { "/work": "FOLDER" }),
      `{"apiKey":"REDACTED","tokens":{"input":3},"path":"HOME/x","at":"FOLDER/a"}`,
    );
    assert.deepEqual(shapeOf([{ title: "Mine", at: 1, of: null, tags: ["a", "b"] }, { title: "Other" }]), [
      { title: "string", at: "number", of: null, tags: ["string"] },
    ]);
  });
});
