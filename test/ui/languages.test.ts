import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const COMMAND: ScriptStep = {
  tools: [{ name: "bash", args: { command: "git push", description: "推送分支" } }],
};
const ANSWER = "测试缓慢，因为**每个测试**都启动自己的服务器。";

describe("a real editor in Simplified Chinese", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model();
    const folder = tempDir("work");
    server = await start.server({
      model,
      directory: folder,
      config: { permission: { bash: "ask" } },
    });
    parent = await createSession(server, "发布新版本");
    launcher = await start.launcher(server);
    workbench = await start.window({
      server,
      language: "zh-cn",
      settings: {
        "asyncagents.notifyUser": "never",
        "asyncagents.defaultModel": "nowhere/none",
      },
      shows: ({ page }) => page.locator(".welcome-view", { hasText: "此会话中没有后台任务。" }).waitFor(),
    });
  });

  const launch = (description: string, steps: readonly ScriptStep[], batchID?: string) =>
    launcher.engine.launch({
      prompt: script(steps),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      batchID,
    });

  it("shows the manifest's texts in Chinese: the empty view, the commands", async () => {
    await takePictures(workbench, "zh-cn-welcome");
    await workbench.press("F1");
    await workbench.quickInput.type(">Async Agents: ");
    await workbench.quickInput.items.filter({ hasText: "Async Agents: 启动任务…" }).waitFor();
    await takePictures(workbench, "zh-cn-palette");
    await workbench.quickInput.cancel();
  });

  it("shows a refusal of the engine in Chinese in the dialog that caused it", async () => {
    await workbench.runCommand("Async Agents: 启动任务…");
    await workbench.quickInput.shows("由哪个智能体来做？");
    await workbench.screenshot("zh-cn-agents-dark");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("任务要做什么？");
    await workbench.quickInput.enter("查明测试缓慢的原因并报告。");
    await workbench.quickInput.shows("没有模型“nowhere/none”；可用的有：");
    await takePictures(workbench, "zh-cn-refusal");
    await workbench.quickInput.cancel();
  });

  it("shows tasks, batches and requests in Chinese, with the numbers filled in", async () => {
    const done = await launch("查明测试缓慢的原因", [{ text: ANSWER }]);
    await ended(launcher, done.id);
    for (const name of ["审查解析器", "审查打印器"])
      await launch(name, [{ text: "正在查看", gate: "review" }], "b1");
    await launch("推送分支", [COMMAND]);
    await workbench.notification("general（任务“推送分支”）想要运行：git push（理由：推送分支）").waitFor();
    const row = workbench.treeItem("推送分支");
    await until("the row", async () =>
      /^推送分支、正在运行、general、需要授权/.test((await row.getAttribute("aria-label")) ?? ""),
    );
    await workbench.treeItem("批次（2 个任务）").filter({ hasText: "0/2 已结束" }).waitFor();
    const status = workbench.page.locator('.statusbar-item[id$="asyncagents.status"] a');
    const label = "Async Agents：2 个智能体正在工作、1 个请求等待你处理";
    await until("the count", async () => (await status.getAttribute("aria-label")) === label);
    await takePictures(workbench, "zh-cn-tasks");
    await workbench.openContextMenu(row);
    await workbench.screenshot("zh-cn-context-menu-dark");
    await workbench.closeMenu();
  });

  it("shows the panel in Chinese, including how a task ended", async () => {
    await workbench.runCommand("Notifications: Clear All Notifications");
    await workbench.clickRow(workbench.treeItem("推送分支"));
    const frame = workbench.webviewFrame();
    await frame.getByRole("heading", { name: "运行命令 general" }).waitFor();
    await takePictures(workbench, "zh-cn-request");
    await frame.getByRole("button", { name: "拒绝", exact: true }).click();
    await frame.getByText("工具 bash 的权限请求或问题被拒绝，任务因此结束。").first().waitFor();
    await takePictures(workbench, "zh-cn-failed");
    await workbench.clickRow(workbench.treeItem("查明测试缓慢的原因"));
    await workbench.webviewFrame().getByText("已完成").first().waitFor();
    await takePictures(workbench, "zh-cn-completed");
    await takeHighContrastPicture(workbench, "zh-cn-completed");
    model.release("review");
  });

  it("shows the settings in Chinese", async () => {
    await workbench.runCommand("Preferences: Open Settings (UI)");
    await workbench.page.locator(".settings-editor .suggest-input-container").click();
    await workbench.page.keyboard.insertText("asyncagents");
    await workbench.page.getByText("此文件夹中同时启动的任务数；其余任务按启动顺序等待。").waitFor();
    await takePictures(workbench, "zh-cn-settings");
  });
});
