import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServerFailure } from "../../src/engine/ports.ts";
import type { FileChange, FileContent, SessionChanges } from "../../src/engine/server-model.ts";
import { OpenCodeAgentServer } from "../../src/opencode/agent-server.ts";
import { createClient } from "../../src/opencode/client.ts";
import { createSession } from "../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import {
  script,
  startScriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

const text = (text: string): FileContent => ({ kind: "text", text });
const excerpt = (text: string): FileContent => ({ kind: "excerpt", text });
const absent: FileContent = { kind: "absent" };
const unknown: FileContent = { kind: "unknown" };
const binary: FileContent = { kind: "binary" };
const BIG = `${"x".repeat(99)}\n`.repeat(50_000);

for (const place of ["a Git repository", "a folder without Git"] as const)
  describe(`the files that a session changed in ${place}`, () => {
    const isGit = place === "a Git repository";
    const folder = tempDir("work");
    const at = (name: string): string => join(folder, name);
    let model: ScriptedModel;
    let opencode: OpenCodeServer;
    let server: OpenCodeAgentServer;

    before(async () => {
      writeFileSync(at("big.txt"), BIG);
      if (isGit) {
        execFileSync("git", ["init", "--quiet"], { cwd: folder });
        // The server's snapshots include untracked files only below 2 MB.
        execFileSync("git", ["add", "."], { cwd: folder });
      }
      model = await startScriptedModel();
      opencode = await startOpenCode({ model, directory: folder });
      const { url, password } = opencode;
      const client = createClient({ url, username: "opencode", password }, folder);
      server = new OpenCodeAgentServer(
        () => client,
        () => ({ dispose: () => undefined }),
      );
      // The first turn of a server takes longer than any other one.
      await turn(await createSession(opencode), { text: "Ready." });
    });
    after(async () => {
      await opencode?.stop();
      await model?.stop();
    });

    const bash = (command: string): ScriptStep => ({
      tools: [{ name: "bash", args: { command, description: "Run it" } }],
    });
    const write = (name: string, content: string): ScriptStep => ({
      tools: [{ name: "write", args: { filePath: at(name), content } }],
    });
    const edit = (name: string, oldString: string, newString: string): ScriptStep => ({
      tools: [
        { name: "read", args: { filePath: at(name) } },
        { name: "edit", args: { filePath: at(name), oldString, newString } },
      ],
    });

    /** Starts a turn; `ended` resolves when it has ended. */
    function begin(id: string, ...steps: ScriptStep[]): { ended: Promise<unknown> } {
      const body = { agent: "build", parts: [{ type: "text", text: script(steps) }] };
      const ended = opencode
        .fetch(`/session/${id}/message`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        })
        .then((response) => response.text());
      return { ended };
    }
    const turn = async (id: string, ...steps: ScriptStep[]): Promise<unknown> => begin(id, ...steps).ended;

    /** The content of each file before and after, by name, once the server reports that many files. */
    async function changes(
      id: string,
      files: number,
      since = 0,
    ): Promise<Readonly<Record<string, readonly [FileContent, FileContent]>>> {
      const found = await summedUp(id, files, since);
      return Object.fromEntries(found.files.map(({ path, before, after }) => [name(path), [before, after]]));
    }
    const summedUp = async (id: string, files: number, since = 0): Promise<SessionChanges> =>
      until(`${files} changed files`, async () => {
        const found = await server.changes(id, since);
        return found.files.length === files && found;
      });
    const name = (path: string): string => path.slice(folder.length + 1);
    const doubtful = ({ files }: SessionChanges): string[] =>
      files.filter(({ isDoubtful }: FileChange) => isDoubtful).map(({ path }) => name(path));

    it("reports no files for a session that changed nothing", async () => {
      const id = await createSession(opencode);
      await turn(id, { tools: [{ name: "glob", args: { pattern: "*" } }] }, { text: "Nothing to do." });
      assert.deepEqual(await server.changes(id, 0), { files: [], hasSnapshots: isGit });
      await assert.rejects(
        server.changes("ses_none", 0),
        (error) => error instanceof ServerFailure && error.reason === "not-found",
      );
    });

    if (isGit) {
      it("reports for each file its content before and after, whichever tool changed it", async () => {
        writeFileSync(at("gone.txt"), "to be deleted\n");
        writeFileSync(at("old name.txt"), "same\n");
        writeFileSync(at("picture.dat"), Buffer.from([0, 1, 2, 255]));
        writeFileSync(at("windows.txt"), "one\r\ntwo");
        const id = await createSession(opencode);
        await turn(
          id,
          write("src/new.ts", "export {};\n"),
          bash(
            "rm gone.txt; mv 'old name.txt' 'ñew name.txt'; printf '\\0zz' > picture.dat; " +
              "printf '\\r\\nthree' >> windows.txt; : > empty.txt; echo a > passing.txt",
          ),
          bash("rm passing.txt"),
          { text: "Done." },
        );
        assert.deepEqual(await changes(id, 7), {
          "empty.txt": [absent, text("")],
          "gone.txt": [text("to be deleted\n"), absent],
          "old name.txt": [text("same\n"), absent],
          "picture.dat": [binary, binary],
          "src/new.ts": [absent, text("export {};\n")],
          "windows.txt": [text("one\r\ntwo"), text("one\r\ntwo\r\nthree")],
          "ñew name.txt": [absent, text("same\n")],
        });
      });

      it("covers several turns: from before the first change to after the last one", async () => {
        writeFileSync(at("counter.txt"), "1\n");
        const id = await createSession(opencode);
        await turn(id, edit("counter.txt", "1", "2"), write("draft.txt", "x\n"), { text: "Two." });
        await turn(id, bash("echo 3 > counter.txt; rm draft.txt"), { text: "Three." });
        assert.deepEqual(await changes(id, 1), { "counter.txt": [text("1\n"), text("3\n")] });
      });

      it("leaves out the changes that a fork inherits", async () => {
        writeFileSync(at("forked.txt"), "1\n");
        const source = await createSession(opencode);
        await turn(source, edit("forked.txt", "1", "2"), write("inherited.txt", "x\n"), { text: "Done." });
        await changes(source, 2);
        const since = Date.now();
        const { id } = await server.copySession(source, { title: "Fork" });
        await turn(id, bash("echo 3 > forked.txt"), { text: "Done." });
        assert.deepEqual(await changes(id, 1, since), { "forked.txt": [text("2\n"), text("3\n")] });
      });

      it("leaves out what others changed meanwhile, and marks where that is uncertain", async () => {
        const [one, two] = [await createSession(opencode, "One"), await createSession(opencode, "Two")];
        const first = begin(
          one,
          bash("echo mine > one.txt; until [ -e two.txt ] && [ -e both.txt ]; do sleep 0.05; done"),
          { text: "Waiting.", gate: "person", tools: [{ name: "glob", args: { pattern: "*" } }] },
          // Once the server reports this step, it has reported the previous one.
          write("last.txt", "mine\n"),
          { text: "Done." },
        );
        await until("the first file", () => existsSync(at("one.txt")));
        await turn(two, write("two.txt", "another's\n"), bash("echo whose > both.txt"), { text: "Done." });
        await model.waitForRequest(({ step }) => step.gate === "person");
        writeFileSync(at("person.txt"), "the person's\n");
        model.release("person");
        await first.ended;
        const found = await summedUp(one, 3);
        assert.deepEqual(
          found.files.map(({ path }) => name(path)),
          ["both.txt", "last.txt", "one.txt"],
        );
        assert.deepEqual(doubtful(found), ["both.txt", "one.txt"]);
        const others = await summedUp(two, 2);
        assert.deepEqual(
          others.files.map(({ path }) => name(path)),
          ["both.txt", "two.txt"],
        );
        assert.deepEqual(doubtful(others), ["both.txt"]);
      });

      it("says which files someone else also changed, and which sessions are still working on them", async () => {
        for (const file of ["shared.txt", "persons.txt", "own.txt"])
          writeFileSync(at(file), "first\n2\n3\n4\nlast\n");
        const [one, two] = [await createSession(opencode, "One"), await createSession(opencode, "Two")];
        const first = begin(
          one,
          edit("shared.txt", "first", "FIRST"),
          edit("persons.txt", "first", "FIRST"),
          edit("own.txt", "first", "FIRST"),
          { text: "Waiting.", gate: "others", tools: [{ name: "glob", args: { pattern: "*" } }] },
          write("last.txt", "mine\n"),
          { text: "Done." },
        );
        await model.waitForRequest(({ step }) => step.gate === "others");
        const second = begin(two, edit("shared.txt", "last", "LAST"), { text: "Done.", gate: "two" });
        await model.waitForRequest(({ step }) => step.gate === "two");
        writeFileSync(at("persons.txt"), "FIRST\n2\n3\n4\nLAST\n");
        model.release("others");
        await first.ended;
        const facts = ({ files }: SessionChanges) =>
          files.map(({ path, isMixed, mixedWith, workedOnBy }) => [
            name(path),
            isMixed,
            mixedWith,
            workedOnBy,
          ]);
        assert.deepEqual(facts(await summedUp(one, 4)), [
          ["last.txt", false, [], []],
          ["own.txt", false, [], []],
          ["persons.txt", true, [], []],
          ["shared.txt", true, [two], [two]],
        ]);
        model.release("two");
        await second.ended;
        const { files } = await until("the other one to be done", async () => {
          const found = await server.changes(one, 0);
          return found.files.every(({ workedOnBy }) => workedOnBy.length === 0) && found;
        });
        assert.deepEqual(
          files.filter(({ isMixed }) => isMixed).map(({ path }) => name(path)),
          ["persons.txt", "shared.txt"],
        );
      });

      it("says when a file changed between two turns", async () => {
        writeFileSync(at("between.txt"), "first\n2\n3\n4\nlast\n");
        const id = await createSession(opencode);
        await turn(id, edit("between.txt", "first", "FIRST"), { text: "Done." });
        assert.equal((await summedUp(id, 1)).files[0]?.isMixed, false);
        writeFileSync(at("between.txt"), "FIRST\n2\nperson's\n4\nlast\n");
        await turn(id, edit("between.txt", "last", "LAST"), { text: "Done." });
        await until("the second turn to be summed up", async () => {
          const [file] = (await server.changes(id, 0)).files;
          return file?.after.kind === "text" && file.after.text.includes("LAST") && file.isMixed;
        });
      });

      it("includes the changes of subagents", async () => {
        const id = await createSession(opencode);
        const prompt = script([write("by-subagent.txt", "x\n"), { text: "Done." }]);
        await turn(
          id,
          {
            tools: [{ name: "task", args: { description: "Write it", prompt, subagent_type: "general" } }],
          },
          { text: "Done." },
        );
        assert.deepEqual(await changes(id, 1), { "by-subagent.txt": [absent, text("x\n")] });
      });

      it("returns a file of 5 MB completely", async () => {
        const id = await createSession(opencode);
        await turn(id, bash("echo end >> big.txt"), { text: "Done." });
        const { "big.txt": big } = await changes(id, 1);
        assert.ok(big?.[0].kind === "text" && big[1].kind === "text");
        assert.equal(big[0].text, BIG);
        assert.equal(big[1].text, `${BIG}end\n`);
      });
    } else {
      it("knows what file tools wrote, and nothing of commands", async () => {
        mkdirSync(at("src"));
        writeFileSync(at("src/list.ts"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n");
        writeFileSync(at("whole.txt"), "before\n");
        const id = await createSession(opencode);
        await turn(
          id,
          edit("src/list.ts", "a\n", "A\n"),
          edit("src/list.ts", "m\n", "M\n"),
          write("new.txt", "new\n"),
          { tools: [{ name: "read", args: { filePath: at("whole.txt") } }] },
          write("whole.txt", "after\n"),
          bash("echo x > by-command.txt"),
          { text: "Done." },
        );
        const found = await changes(id, 3);
        assert.deepEqual(found, {
          "new.txt": [absent, text("new\n")],
          "src/list.ts": [
            excerpt("a\nb\nc\nd\ne\n⋯\ni\nj\nk\nl\nm\n"),
            excerpt("A\nb\nc\nd\ne\n⋯\ni\nj\nk\nl\nM\n"),
          ],
          "whole.txt": [unknown, text("after\n")],
        });
        assert.equal((await server.changes(id, 0)).hasSnapshots, false);
      });
    }

    it("knows what the finished tools of a running turn did, also after it is cancelled", async () => {
      for (const file of ["step1.txt", "step2.txt", "step2-command.txt"]) rmSync(at(file), { force: true });
      const id = await createSession(opencode);
      const { ended } = begin(
        id,
        write("step1.txt", "1\n"),
        {
          tools: [
            { name: "write", args: { filePath: at("step2.txt"), content: "2\n" } },
            {
              name: "bash",
              args: { command: "echo 2 > step2-command.txt; sleep 60", description: "Take long" },
            },
          ],
        },
        { text: "Never said." },
      );
      await until("the command", () => existsSync(at("step2-command.txt")));
      const written = { "step1.txt": [absent, text("1\n")], "step2.txt": [absent, text("2\n")] };
      assert.deepEqual(await changes(id, 2), written);
      await server.abort(id);
      await ended;
      // A snapshot is taken after the cancel, but no diff.
      const cancelled = isGit ? { ...written, "step2-command.txt": [unknown, unknown] } : written;
      assert.deepEqual(await changes(id, Object.keys(cancelled).length), cancelled);
    });
  });
