import assert from "node:assert/strict";
import { seatPath } from "../../src/bridge/writer-seat.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import { createSession, ended, notices } from "../support/engine.ts";
import { startOpenCode, type OpenCodeServer } from "../support/opencode.ts";
import {
  script,
  startScriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { openSharedWindow, windowProcesses, type SharedWindow } from "../support/windows.ts";

describe("several windows on one server and folder", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let seat: string;
  let parent: string;
  const windows: SharedWindow[] = [];

  before(async () => {
    model = await startScriptedModel();
    server = await startOpenCode({ model });
  });

  beforeEach(async () => {
    seat = seatPath(tempDir("state"), server.url, server.directory);
    parent = await createSession(server);
  });

  afterEach(() => {
    for (const window of windows.splice(0)) window.dispose();
  });

  after(async () => {
    await server?.stop();
    await model?.stop();
  });

  async function open(): Promise<SharedWindow> {
    const window = await openSharedWindow(server, seat);
    windows.push(window);
    return window;
  }

  const input = (...steps: readonly ScriptStep[]): LaunchInput => ({
    prompt: script(steps),
    description: "Shared",
    agent: "general",
    parentSessionID: parent,
    launchedBy: "person",
  });

  const told = (count: number): Promise<unknown> =>
    until(`${count} notices`, async () => (await notices(server, parent)).length === count);

  it("one writes, and a reader's commands are carried out by it", async () => {
    const [writer, reader] = [await open(), await open()];
    assert.deepEqual([writer.election.role, reader.election.role], ["writer", "reader"]);

    const { id } = await reader.commands.launch(input({ text: "First." }));
    assert.equal(reader.engine.get(id)?.status, "running");
    assert.ok(writer.engine.get(id));
    await ended(reader, id);
    await told(1);
    const output = await reader.commands.output(id);
    assert.equal(output.result, "First.");

    const resumed = await reader.commands.resume(id, script([{ text: "Second.", gate: "held" }]));
    assert.deepEqual([resumed.status, resumed.resumeCount], ["resumed", 1]);
    assert.equal(reader.engine.get(id)?.status, "resumed");
    await model.waitForRequest(({ sessionID, step }) => sessionID === id && step.gate === "held");
    assert.equal((await reader.commands.cancel(id)).status, "cancelled");
    assert.equal(reader.engine.get(id)?.status, "cancelled");

    const again = await reader.commands.retry(id);
    assert.notEqual(again.id, id);
    model.release("held");
    assert.equal((await ended(reader, again.id)).status, "completed");
    await reader.commands.clear(id);
    await until("the clearing", () => !reader.engine.list(parent).some((task) => task.id === id));
    await reader.commands.restore(id);
    await until("the return", () => reader.engine.list(parent).some((task) => task.id === id));
    await until("no change that only one window knows", () => {
      const known = ({ engine }: SharedWindow) =>
        engine.list(parent).map((task) => [task.id, task.status, task.revision, task.notice.state]);
      return JSON.stringify(known(writer)) === JSON.stringify(known(reader)) && known(reader).length === 2;
    });
    await told(3);
  });

  it("a reader hears the refusal that the writer's engine gave", async () => {
    const [, reader] = [await open(), await open()];
    const { id } = await reader.commands.launch(input({ text: "busy", gate: "busy" }));
    await assert.rejects(reader.commands.resume(id, "more"), {
      name: "Refusal",
      code: "wrong-status",
      message: /Only completed tasks can be resumed.*running/,
    });
    await assert.rejects(reader.commands.launch({ ...input(), prompt: " " }), { code: "empty-prompt" });
    await assert.rejects(reader.commands.output("ses_none"), { code: "unknown-task" });
    model.release("busy");
    await ended(reader, id);
  });

  it("[OUT-3] [OUT-4] a reader's blocking output waits in the reader, whatever becomes of the writer", async () => {
    const [writer, reader] = [await open(), await open()];
    const { id } = await reader.commands.launch(input({ text: "Awaited.", gate: "awaited" }));
    const early = await reader.commands.output(id, { block: true, timeout: 0.05 });
    assert.deepEqual([early.task.status, early.result], ["running", undefined]);
    await assert.rejects(reader.commands.output(id, { block: true, timeout: -1 }), {
      code: "invalid-argument",
    });
    const aborted = new AbortController();
    const given = reader.commands.output(id, { block: true, signal: aborted.signal });
    aborted.abort();
    await assert.rejects(given, { code: "cancelled-by-caller" });

    const output = reader.commands.output(id, { block: true });
    writer.dispose();
    await until("the take-over", () => reader.election.role === "writer", 1_000);
    model.release("awaited");
    assert.equal((await output).result, "Awaited.");
    assert.ok((await output).task.retrievedAt);
    await told(1);
  });

  it("of two resumes at the same instant from two windows one wins, and the other hears that the task is being resumed", async () => {
    const [writer, one, two] = [await open(), await open(), await open()];
    const { id } = await writer.commands.launch(input({ text: "First." }));
    await ended(writer, id);
    await told(1);
    const outcomes = await Promise.allSettled(
      [one, two].map(({ commands }) => commands.resume(id, script([{ text: "Again.", gate: "again" }]))),
    );
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    const refused = outcomes.find((outcome) => outcome.status === "rejected");
    assert.match(String(refused?.reason), /currently being resumed/);
    model.release("again");
    assert.equal((await ended(one, id)).resumeCount, 1);
    await told(2);
  });

  it("when the writing window closes another one takes over within a second and finishes what ran, told once", async () => {
    const [first, second, third] = [await open(), await open(), await open()];
    const { id } = await first.commands.launch(input({ text: "Outlives.", gate: "outlives" }));
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    first.dispose();
    const closed = Date.now();
    const roles = (): string =>
      [second, third]
        .map(({ election }) => election.role)
        .sort()
        .join();
    await until("the take-over", () => roles() === "reader,writer", 1_000);
    assert.ok(Date.now() - closed < 1_000);
    model.release("outlives");
    await Promise.all([second, third].map((window) => ended(window, id)));
    await until("the delivery", () => third.engine.get(id)?.notice.state === "delivered");
    assert.equal((await notices(server, parent)).length, 1);
    assert.equal((await third.commands.output(id)).result, "Outlives.");
  });

  it("when the writing window crashes another one takes over within a second and finishes what ran, told once", async () => {
    const [crashing] = await windowProcesses(1);
    assert.ok(crashing);
    const { url, password, directory, env } = server;
    const opened = await crashing.tell({ type: "open", server: { url, password, directory, env }, seat });
    assert.equal(opened.role, "writer");
    const window = await open();
    assert.equal(window.election.role, "reader");
    const { prompt } = input({ text: "Survives.", gate: "survives" });
    const { taskID = "" } = await crashing.tell({ type: "launch", prompt, parentSessionID: parent });
    await model.waitForRequest(({ sessionID }) => sessionID === taskID);
    await crashing.kill();
    await until("the take-over", () => window.election.role === "writer", 1_000);
    model.release("survives");
    await ended(window, taskID);
    await until("the delivery", () => window.engine.get(taskID)?.notice.state === "delivered");
    assert.equal((await notices(server, parent)).length, 1);
    const { id } = await window.commands.launch(input({ text: "Goes on." }));
    await ended(window, id);
  });

  it("a window that opens after the only one crashed writes, and tells what nobody told", async () => {
    const [crashing] = await windowProcesses(1);
    assert.ok(crashing);
    const { url, password, directory, env } = server;
    await crashing.tell({ type: "open", server: { url, password, directory, env }, seat });
    const { prompt } = input({ text: "Unseen.", gate: "unseen" });
    const { taskID = "" } = await crashing.tell({ type: "launch", prompt, parentSessionID: parent });
    await model.waitForRequest(({ sessionID }) => sessionID === taskID);
    await crashing.kill();
    model.release("unseen");
    const window = await open();
    assert.equal(window.election.role, "writer");
    await ended(window, taskID);
    await told(1);
  });
});
