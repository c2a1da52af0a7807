import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Frame, FrameLocator, Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import { openCodeBinary, type OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { barriers } from "../support/panel-page/barriers.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { tempDir } from "../support/temp.ts";
import { setUp } from "./support/set-up.ts";
import { picturesWanted, type Workbench } from "./support/workbench.ts";

const SOURCE = `import { connect } from "./db.ts";

/** Milliseconds. */
const TIMEOUT = 3_000;

export async function load(id: string) {
  const db = await connect();
  return db.one("select * from profiles where id = ?", id);
}
`;

const ANSWER = `## The timeout was too short

I raised it in \`src/load.ts:4\`; see also \`src/nowhere.ts\`, \`src/link.ts\` and \`../outside.ts\`.

| Case | Before | After |
| --- | ---: | ---: |
| cold start | fails | **2.1 s** |
| warm start | 0.3 s | 0.3 s |

\`\`\`ts
/** Milliseconds. */
const TIMEOUT = 10_000;

export async function load(id: string): Promise<Profile> {
  const db = await connect({ retries: 3 }); // waits for the database
  return db.one("select * from profiles where id = ?", id);
}
\`\`\`

1. The tests pass again.
2. Nothing else reads \`TIMEOUT\`.

![The logo](docs/logo.png) ![A secret](docs/link.png)
`;

const HOSTILE = `<h1>Not a heading</h1><script>window.pwned = 1</script>
<img src="http://evil.test/a.png" onerror="window.pwned = 1"> <iframe src="http://evil.test/"></iframe>
<style>@import url("http://evil.test/a.css"); body { display: none }</style>
<link rel="stylesheet" href="http://evil.test/b.css"> <svg onload="window.pwned = 1"></svg>

![picture](http://evil.test/b.png) ![data](data:image/svg+xml,<svg onload=alert(1)>)

[run](command:workbench.action.quit) [js](javascript:window.pwned=1) [data](data:text/html,x) [editor](vscode://x.y/z)
[file](file:///etc/passwd) <javascript:window.pwned=1>

\`\`\`html"onmouseover="window.pwned=1
<script>window.pwned = 1</script>
\`\`\`

\`../../../etc/passwd.txt\` ${"word".repeat(300)}

| ${Array.from({ length: 30 }, (_, index) => `column ${index}`).join(" | ")} |
|${"---|".repeat(30)}
| ${Array.from({ length: 30 }, () => "a fairly long cell").join(" | ")} |

مرحبا بالعالم، هذا نص من اليمين إلى اليسار مع **كلمة** مهمة.

- שלום עולם
`;

/** Ten thousand colored lines, one of them very long. */
const NOISE = String.raw`for i in $(seq 1 10000); do printf '\033[3%dmline %d\033[0m \033]8;;http://evil.test\007x\n' $((i % 8)) $i; done; head -c 9000 /dev/zero | tr '\0' w`;

const options = (...labels: readonly string[]) =>
  labels.map((label) => ({ label, description: `What ${label} does` }));
const QUESTIONS = [
  { header: "Database", question: "Which database is it to use?", options: options("SQLite", "Postgres") },
  {
    header: "Checks",
    question: "Which checks are to run?",
    options: options("Lint", "Types"),
    multiple: true,
  },
];

/** The model's steps for each prompt. */
const SCRIPTS: Readonly<Record<string, readonly ScriptStep[]>> = {
  "Raise the timeout": [
    {
      reasoning: "First I look at the file, then I change one line. ",
      tools: [{ name: "read", args: { filePath: "src/load.ts" } }],
    },
    {
      text: "The limit is too low. I raise it.",
      tools: [
        {
          name: "edit",
          args: { filePath: "src/load.ts", oldString: "TIMEOUT = 3_000", newString: "TIMEOUT = 10_000" },
        },
      ],
    },
    {
      text: ANSWER.slice(0, 400),
      gate: "rest",
      gateAfterText: true,
      tools: [{ name: "glob", args: { pattern: "*" } }],
    },
    { text: ANSWER },
  ],
  "Publish the branch": [
    {
      tools: [{ name: "bash", args: { command: "git push origin main", description: "Publish the branch" } }],
    },
    { text: "Then I leave it." },
  ],
  "Set up the database": [
    { tools: [{ name: "question", args: { questions: QUESTIONS } }] },
    { text: "Thank you, that is what I needed." },
  ],
  "Count with the wrong key": [{ status: 401, body: { error: { message: "The key was refused." } } }],
  "Say something dangerous": [
    {
      tools: [{ name: "bash", args: { command: NOISE, description: "<img src=x onerror=window.pwned=1>" } }],
    },
    { text: HOSTILE },
  ],
  "And then": [{ text: "Carried on." }],
};

/** These are all running before the window opens. */
const SEEDED = [
  "Raise the timeout",
  "Publish the branch",
  "Set up the database",
  "Count with the wrong key",
  "Say something dangerous",
];

const THEMES = {
  dark: { className: "vs-dark", media: { colorScheme: "dark", forcedColors: "none" } },
  light: { className: "vs", media: { colorScheme: "light", forcedColors: "none" } },
  hc: { className: "hc-black", media: { colorScheme: "dark", forcedColors: "active" } },
} as const;

function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  const steps = Object.entries(SCRIPTS).findLast(([text]) => prompt.includes(text))?.[1] ?? [];
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  return steps[since.filter(({ role }) => role === "assistant").length] ?? { text: "Done." };
}

describe("the output panel in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let frame: FrameLocator;
  const requested: string[] = [];
  /** Accessibility barriers, by picture. */
  const found: string[] = [];

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    const folder = tempDir("work");
    mkdirSync(join(folder, "src"));
    writeFileSync(join(folder, "src", "load.ts"), SOURCE);
    const secret = join(tempDir("elsewhere"), "secret.ts");
    writeFileSync(secret, "secret");
    symlinkSync(secret, join(folder, "src", "link.ts"));
    mkdirSync(join(folder, "docs"));
    copyFileSync(new URL("../../media/icon.png", import.meta.url), join(folder, "docs", "logo.png"));
    const picture = join(tempDir("elsewhere"), "picture.png");
    copyFileSync(join(folder, "docs", "logo.png"), picture);
    symlinkSync(picture, join(folder, "docs", "link.png"));
    execFileSync("git", ["init", "--quiet"], { cwd: folder });
    const permission = { edit: "ask", bash: { "*": "allow", "git push *": "ask" } };
    server = await start.server({ model, directory: folder, config: { permission } });
    const parentSessionID = await createSession(server, "Make the tests pass");
    await seedTasks(
      server,
      SEEDED.map((prompt) => ({
        parentSessionID,
        description: prompt,
        prompt,
        agent: "build",
        // Their ends are not notified, because the parent's agent would then do the same once more.
        launchedBy: "person" as const,
      })),
    );
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.server.path": openCodeBinary(),
        "asyncagents.defaultAgent": "build",
        "asyncagents.maxConcurrentTasks": 1,
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
      },
      // Rows move when tasks end.
      shows: async (opened) => {
        await opened.treeItem("Raise the timeout").waitFor();
        await opened.row("Count with the wrong key, failed").waitFor();
        await opened.row("Say something dangerous, completed").waitFor();
      },
    });
    frame = workbench.webviewFrame();
    workbench.page.on("request", (request) => requested.push(request.url()));
  });

  /** @param settled what is in the tree once the rows no longer change their order */
  async function launch(prompt: string, settled = workbench.treeItem(prompt)): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task…");
    await workbench.quickInput.choose("build");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(prompt);
    await settled.first().waitFor();
    await show(prompt);
  }

  async function show(prompt: string): Promise<void> {
    await workbench.clickRow(workbench.treeItem(prompt));
    await frame.getByRole("heading", { level: 1, name: prompt }).waitFor();
  }

  const button = (name: string | RegExp): Locator => frame.getByRole("button", { name, exact: true });
  const card = (): Locator => frame.getByRole("article");
  const ended = (status: string): Promise<void> => frame.locator(".status", { hasText: status }).waitFor();

  /** Takes a picture, and by default records the accessibility barriers of the page. */
  async function look(name: string, { theme = "dark", axe = true } = {}): Promise<void> {
    await workbench.page.mouse.move(0, 0);
    await workbench.screenshot(`panel-${name}-${theme}`);
    if (!axe) return;
    const page = await panelFrame();
    for (const barrier of await barriers((script) => page.evaluate(script)))
      found.push(`${name}, ${theme}: ${barrier}`);
  }

  async function wear(theme: keyof typeof THEMES): Promise<void> {
    const { className, media } = THEMES[theme];
    await workbench.page.emulateMedia(media);
    await workbench.page.locator(`.monaco-workbench.${className}`).waitFor();
  }

  async function panelFrame(): Promise<Frame> {
    const page = await (await frame.locator("html").elementHandle())?.ownerFrame();
    assert.ok(page);
    return page;
  }

  it("shows the change that a file permission asks for, and makes none before the answer", async () => {
    await show("Raise the timeout");
    await card().getByText("Change a File").waitFor();
    assert.equal(await card().locator(".removed").textContent(), "-const TIMEOUT = 3_000;");
    await look("permission");
    assert.equal(readFileSync(join(server.directory, "src", "load.ts"), "utf8"), SOURCE);
    await button("Allow Once").press("Enter");
    await card().waitFor({ state: "detached" });
  });

  it("shows text while it is written, and a task that is queued", async () => {
    await frame.getByRole("heading", { name: "The timeout was too short" }).first().waitFor();
    await look("streaming");
    await launch("And then");
    await frame.locator(".activity", { hasText: "Queued; starts when another task ends" }).waitFor();
    await look("queued");
    // Rows move once tasks end.
    await show("Raise the timeout");
    model.release("rest");
    await ended("Completed");
  });

  it("shows a finished task with highlighted code, its tools and its diff", async () => {
    await frame.locator(".tok-kwd", { hasText: "export" }).first().waitFor();
    for (const tool of [/^read/, /^edit/]) await frame.locator(".line", { hasText: tool }).first().click();
    const diff = frame.getByRole("group", { name: "Changes" });
    await diff.scrollIntoViewIfNeeded();
    assert.match((await diff.locator(".added").textContent()) ?? "", /^\+const TIMEOUT = 10_000;/);
    await look("finished-opened");
  });

  it("shows an image of the workspace in the answer, and none from elsewhere", async () => {
    const image = frame.getByRole("button", { name: "The logo (docs/logo.png)" }).locator("img").last();
    await image.waitFor();
    await button("A secret (docs/link.png) The image wasn't found in this workspace.").last().waitFor();
    assert.equal(await frame.locator("img").count(), await frame.locator("[title='docs/logo.png']").count());
    await image.scrollIntoViewIfNeeded();
    for (const theme of ["dark", "light"] as const) {
      await wear(theme);
      await look("image", { theme });
    }
    await wear("dark");
    await image.click();
    await workbench.tab("logo.png").waitFor();
    await workbench.runCommand("View: Close Editor");
  });

  it("opens a file that the answer names, at its line, and no file outside the workspace", async () => {
    const file = (name: string): Locator => frame.getByRole("button", { name, exact: true }).last();
    for (const [name, note] of [
      ["src/nowhere.ts", "src/nowhere.ts wasn't found in this workspace."],
      ["src/link.ts", "src/link.ts wasn't found in this workspace."],
      ["../outside.ts", "../outside.ts isn't in this workspace"],
    ] as const) {
      await file(name).click();
      await frame.locator(".toast", { hasText: note }).waitFor();
    }
    await file("src/load.ts:4").click();
    await workbench.tab("load.ts").waitFor();
    await workbench.statusBarItem("Ln 4, Col 1").waitFor();
    await workbench.runCommand("View: Close Editor");
  });

  it("shows hostile output as text", async () => {
    await show("Say something dangerous");
    await frame.getByText("Not a heading").first().waitFor();
    await ended("Completed");
    await look("hostile");
    await frame.locator(".line", { hasText: "bash" }).click();
    await frame.locator(".output").first().waitFor();
    await look("hostile-output");
    const page = await panelFrame();
    assert.equal(await page.evaluate("window.pwned"), undefined);
    assert.equal(
      await frame.locator("img, iframe, link:not([href*='output.css']), .stage style, .stage script").count(),
      0,
    );
    const links = await frame.locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.ok(links.includes("http://evil.test/b.png"));
    assert.deepEqual(
      links.filter((link) => !link?.startsWith("http://evil.test/")),
      [],
    );
    assert.ok(await frame.locator("body").evaluate((body) => body.scrollWidth <= body.clientWidth));
    assert.deepEqual(
      requested.filter((url) => url.includes("evil.test")),
      [],
    );
  });

  it("shows a command's reason in the agent's words, in every theme", async () => {
    for (const theme of ["light", "hc", "dark"] as const) {
      await wear(theme);
      await show("Publish the branch");
      await card().getByText("git push origin main").waitFor();
      await card().getByText("Reason: Publish the branch").waitFor();
      await look("permission-command", { theme });
      await show("Raise the timeout");
      await frame.locator(".tok-kwd", { hasText: "export" }).first().waitFor();
      await look("finished", { theme });
      if (theme === "dark" || !picturesWanted) continue;
      for (const [prompt, name] of [
        ["Set up the database", "question"],
        ["Count with the wrong key", "failed"],
        ["Say something dangerous", "hostile"],
      ] as const) {
        await show(prompt);
        await look(name, { theme, axe: false });
      }
    }
  });

  it("sends a rejection with a message, and the agent continues in another way", async () => {
    await show("Publish the branch");
    await button("Reject with Message…").click();
    await frame
      .getByRole("textbox", { name: "Enter what the agent should do instead" })
      .fill("Leave it for now.");
    await look("rejecting");
    await button("Reject and Send").click();
    await frame.getByText("Then I leave it.").waitFor();
    await ended("Completed");
  });

  it("asks questions with one, several or an own answer, by keyboard alone", async () => {
    await show("Set up the database");
    await card().getByText("2 questions").waitFor();
    await look("question");
    await frame.getByRole("radio", { name: /SQLite/ }).press("Space");
    await workbench.page.keyboard.press("Tab");
    await workbench.page.keyboard.type("DuckDB");
    await frame.getByRole("checkbox", { name: /Types/ }).press("Space");
    await look("question-answered");
    await button("Submit").press("Enter");
    await frame.getByText("that is what I needed").waitFor();
    const asked = await model.waitForRequest(({ messages }) => /DuckDB/.test(JSON.stringify(messages)));
    assert.match(JSON.stringify(asked.messages), /Types/);
    await ended("Completed");
  });

  it("[EXT-6] resumes and forks", async () => {
    await show("Publish the branch");
    const box = frame.getByRole("textbox", { name: "Follow-up prompt" });
    await box.fill("And then");
    await box.press("Enter");
    await frame.getByText("Carried on.").waitFor();
    await ended("Completed");
    await button("Fork").click();
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter("And then, from there");
    await workbench.quickInput.widget.getByRole("option", { name: "Launch, Keeps" }).click();
    // Rows move when a task ends.
    await workbench.treeItem("And then, from there").and(workbench.spoken("completed")).waitFor();
    await show("And then, from there");
    await ended("Completed");
    await frame.getByText("(forked)").waitFor();
    await frame.locator(".scroller").evaluate((scroller) => (scroller.scrollTop = 0));
    await look("forked");
  });

  it("says that it is loading, that the task is gone, and that there is no connection", async () => {
    await show("Publish the branch");
    await workbench.runCommand("View: Close Editor");
    process.kill(server.pid, "SIGSTOP");
    try {
      await show("Publish the branch");
      await frame.getByText("Loading the conversation…").waitFor();
      await look("loading");
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await frame.getByText("Carried on.").waitFor();
    const sessions = (await (await server.fetch("/session")).json()) as { id: string; title: string }[];
    const { id } = sessions.find(({ title }) => title.includes("Publish the branch"))!;
    await server.fetch(`/session/${id}`, { method: "DELETE" });
    await frame.locator(".banner", { hasText: "This task is no longer available." }).waitFor();
    await look("gone");
    await workbench.treeItem("Publish the branch").waitFor({ state: "detached" });
    await show("Raise the timeout");
    await server.kill();
    await frame.locator(".banner").waitFor();
    await look("disconnected");
  });

  it("has no accessibility barriers in the states and themes checked above", () => {
    assert.deepEqual(found, []);
  });
});
