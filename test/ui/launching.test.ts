import type { Locator } from "playwright-core";
import { startHaltingProxy, type HaltingProxy } from "../support/halting-proxy.ts";
import { until } from "../support/wait.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const PROMPT = "Fix the lexer";

describe("launching on a slow server, in a real editor", function () {
  let proxy: HaltingProxy;
  let workbench: Workbench;

  setUp(async (start) => {
    const server = await start.server({ model: await start.model() });
    proxy = await startHaltingProxy(server.url);
    start.stop(() => proxy.close());
    workbench = await start.window({
      server,
      settings: { "asyncagents.server.url": proxy.url, "asyncagents.notifyUser": "never" },
    });
  });

  const launching = (): Locator => workbench.spoken(`${PROMPT}, launching…`);

  it("shows a row at once, and gives the prompt back if the launch fails", async () => {
    const { quickInput } = workbench;
    proxy.decide((request) => (request.startsWith("POST /session") ? "mute" : "pass"));
    await workbench.runCommand("Async Agents: Launch Task");
    await quickInput.choose("general");
    await quickInput.shows("Prompt for general");
    await quickInput.enter(PROMPT);
    await launching().waitFor();
    await quickInput.widget.waitFor({ state: "hidden" });
    await until("the request", () => proxy.requests.some((request) => request.startsWith("POST /session")));
    await takePictures(workbench, "launching");
    proxy.decide(() => "pass");
    proxy.sever();
    await quickInput.shows("Prompt for general");
    await until("the prompt", async () => (await quickInput.input.inputValue()) === PROMPT);
    await launching().waitFor({ state: "detached" });
  });

  it("the row becomes that of the task", async () => {
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Launch Task");
    await quickInput.choose("general");
    await quickInput.shows("Prompt for general");
    await quickInput.enter(PROMPT);
    await workbench.row(`${PROMPT}, completed`).waitFor();
    await launching().waitFor({ state: "detached" });
  });
});
