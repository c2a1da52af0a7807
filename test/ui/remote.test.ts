import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { DaemonState } from "../support/daemon-state.ts";
import { notices } from "../support/engine.ts";
import { hermeticHome } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

/** Each prompt waits for a gate of its own name. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const gate = /Count the \w+/.exec(lastUserText(messages))?.[0];
  return gate === undefined ? { text: "Noted." } : { text: `${gate}: done.`, gate };
}

const GRACE_S = 15;

describe("a folder on another machine, in a real editor", function () {
  const home = hermeticHome();
  const folder = tempDir("work");
  const state = new DaemonState(join(home, ".local", "state", "opencode-async-agents"), realpathSync(folder));
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      model,
      home,
      folder,
      reconnectionGrace: GRACE_S,
      settings: { "asyncagents.maxConcurrentTasks": 1 },
    });
  });
  const asked = (name: string): Promise<unknown> =>
    model.waitForRequest(({ title, messages }) => !title && lastUserText(messages).includes(name), 60_000);

  it("[BKG-1] [BKG-2] work continues while the network is lost for longer than the extension host is kept, and the next window sums it up", async () => {
    for (const prompt of ["Count the files", "Count the lines"]) {
      await workbench.runCommand("Async Agents: Launch Task");
      await workbench.quickInput.choose("general");
      await workbench.quickInput.shows("Enter a prompt.");
      await workbench.quickInput.enter(prompt);
      await workbench.treeItem(prompt).first().waitFor();
    }
    await asked("Count the files");
    const [daemon, server] = [state.daemonPid(), state.server()?.pid];
    const [host] = workbench.server.extensionHosts();
    assert.ok(host !== undefined);

    await workbench.lose();
    assert.deepEqual(workbench.server.extensionHosts(), [host], "the editor waits for the window");
    await until(
      "the editor to give the window up",
      () => workbench.server.extensionHosts().length === 0,
      60_000,
    );
    model.release("Count the files");
    await asked("Count the lines");
    model.release("Count the lines");
    const sessions = (await (await state.fetch("/session?roots=true")).json()) as { readonly id: string }[];
    const parent = sessions[0]?.id ?? assert.fail();
    await until("both notices", async () => (await notices(state, parent)).length === 2, 60_000);
    assert.deepEqual([state.daemonPid(), state.server()?.pid], [daemon, server]);

    await workbench.open();
    await workbench.openView();
    const news = workbench.notification("While you were away");
    await workbench.showNotifications();
    await news.first().waitFor();
    assert.match(await news.first().innerText(), /While you were away: 2 completed/);
    for (const prompt of ["Count the files", "Count the lines"])
      await workbench.row(`${prompt}, completed`).waitFor();
    assert.equal(await workbench.notification("").count(), 1, "the summary is all that is said");
    assert.equal((await notices(state, parent)).length, 2);
    assert.equal(state.daemonPid(), daemon);
  });
});
