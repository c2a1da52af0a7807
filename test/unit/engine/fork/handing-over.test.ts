import assert from "node:assert/strict";
import { cutHistory, type CutHistory } from "../../../../src/engine/fork/cut.ts";
import { MAX_FILE_URL } from "../../../../src/engine/fork/file-text.ts";
import {
  inheritedHistory,
  LAUNCH_TOOL,
  type InheritedHistory,
} from "../../../../src/engine/fork/inherited-history.ts";
import { planFork, type ForkOptions } from "../../../../src/engine/fork/plan.ts";
import { forkPreamble, PREAMBLE_LENGTH } from "../../../../src/engine/fork/preamble.ts";
import { forkPreview } from "../../../../src/engine/fork/preview.ts";
import { transcriptText } from "../../../../src/engine/fork/transcript-text.ts";
import type { Message } from "../../../../src/engine/server-model.ts";
import { agent, ByteCounter, call, file, ids, mark, reasoning, user } from "./conversation.ts";

function cut(source: InheritedHistory, maxTokens = 100_000): Promise<CutHistory> {
  return cutHistory(source, { maxToolResultChars: 1_500, maxTokens }, new ByteCounter());
}

/** This many turns; each takes 5 events: 2 messages with 3 parts in total. */
function turns(count: number, output = "done"): Message[] {
  return Array.from({ length: count }, (_, n) => [
    user(`u${n}`, `Question ${n}`),
    agent(`a${n}`, {}, `Answer ${n}`, call(`c${n}`, { output })),
  ]).flat();
}

const launch = call("c", { status: "running", input: { prompt: "Fork me." } }, LAUNCH_TOOL);
const inFlight = agent("a", { completed: undefined }, call("c", { status: "running" }, "asyncagents_task"));

describe("the preamble of a fork", () => {
  it("frames the history as background, and mentions no cuts if there are none", async () => {
    const preamble = forkPreamble(await cut(inheritedHistory(turns(2))), { sourceTitle: "Fix the\n build" });
    assert.match(preamble, /inherited from the conversation "Fix the build" are background/);
    assert.match(preamble, /Your task is the last prompt alone/);
    assert.doesNotMatch(preamble, /in progress|Not everything|\n/);
  });

  it("is one paragraph: what the agent is, what it reads, and what it has to do", async () => {
    assert.equal(
      forkPreamble(await cut(inheritedHistory(turns(1)))),
      "You are a background agent that works on its own. The messages inherited from another conversation are background: they tell what was said and done before, and files may have changed since. Your task is the last prompt alone; carry it out, and do not go on with other work of that conversation.",
    );
    assert.equal(
      forkPreamble(await cut(inheritedHistory(turns(1))), { sourceTitle: "Fix", carriesOn: true }),
      "You are a background agent that works on its own. The messages so far are your own work, which stopped before it was finished; files may have changed since. A call that is said to be in progress was interrupted then.",
    );
  });

  it("tells of messages without their middle, and how to read what is missing", async () => {
    const messages = [user("u", `Begin. ${"x".repeat(9_000)}`)];
    const preamble = forkPreamble(await cut(inheritedHistory(messages), 1_000));
    assert.match(
      preamble,
      /\n\nNot everything was inherited: 1 message without the middle \(about \d+ of \d+ tokens are here\)\. Where you need what is missing, read it again: make the call once more, or look at the files\.$/,
    );
  });

  it("outlines messages by the first text that says something", async () => {
    const messages = [
      user("u", " \n", `\n${" ".repeat(600)}${"word ".repeat(50)}`),
      agent("a", {}, call("c")),
      agent("b", {}, "  "),
      user("n", "Now."),
      agent("m", {}, "r".repeat(3_000)),
    ];
    const preamble = forkPreamble(await cut({ ...inheritedHistory(messages), messages }, 3_050));
    assert.deepEqual(preamble.split("latest first:\n")[1]?.split("\n"), [
      "- Agent:",
      "- Agent: [Tools: read]",
      `- User: ${"word ".repeat(24)}…`,
    ]);
  });

  it("warns against repeating calls in progress", async () => {
    const preamble = forkPreamble(await cut(inheritedHistory([...turns(1), user("u", "Fork."), inFlight])));
    assert.match(preamble, /in progress belongs to that conversation, .*do not repeat it/);
  });

  it("says that one of these calls started the fork only if one did", async () => {
    const messages = [...turns(1), user("u", "Fork."), agent("a", { completed: undefined }, launch)];
    const said = async (prompt?: string) => forkPreamble(await cut(inheritedHistory(messages, {}, prompt)));
    assert.match(await said("Fork me."), /which carries it on \(one of them started you\): do not repeat it/);
    assert.match(await said(), /which carries it on: do not repeat it/);
  });

  it("says that the conversation was empty", async () => {
    assert.match(
      forkPreamble(await cut(inheritedHistory([]))),
      /forked from another conversation, which was empty/,
    );
  });

  it("lists what was removed and which results were shortened, latest first", async () => {
    const messages = [
      ...turns(2),
      agent("b", {}, call("x", {}, "bash"), call("y", {}, "bash"), call("z")),
      user("n", "Now."),
      agent("m", {}, call("l", { output: "r".repeat(2_000), input: { p: "q".repeat(300) } })),
      agent("k", {}, call("j", { output: "r".repeat(4_000) }, "grep")),
    ];
    const preamble = forkPreamble(await cut(inheritedHistory(messages), 3_600));
    assert.match(
      preamble,
      /: 5 messages of 8 left out, 2 tool results shortened to 1500 characters \(about \d+ of \d+ tokens/,
    );
    const lists = preamble.slice(preamble.indexOf("Results shortened"));
    assert.equal(
      lists,
      [
        "Results shortened, the latest first:",
        '- [Tool: grep] {"path":"j.ts"} (j: 4000 characters)',
        `- [Tool: read] {"p":"${"q".repeat(194)}… (l: 2000 characters)`,
        "",
        "Messages left out, the latest first:",
        "- Agent: [Tools: bash × 2, read]",
        "- Agent: Answer 1 [Tools: read]",
        "- User: Question 1",
        "- Agent: Answer 0 [Tools: read]",
        "- User: Question 0",
      ].join("\n"),
    );
  });

  it("is limited in length, and counts what it has no room for", async () => {
    const long = turns(600, "r".repeat(2_000)).map(({ info, parts }) => ({
      info: { ...info, id: `${info.id} ` },
      parts: parts.map((part) =>
        part.type === "text" ? { ...part, text: `${"long\n".repeat(200)}` } : part,
      ),
    }));
    const preamble = forkPreamble(await cut(inheritedHistory(long), 500_000), {
      sourceTitle: "T".repeat(9_000),
    });
    assert.ok(
      preamble.length <= PREAMBLE_LENGTH && preamble.length > PREAMBLE_LENGTH * 0.8,
      String(preamble.length),
    );
    assert.equal(preamble.match(/^… and \d+ more$/gm)?.length, 2);
    const shown = preamble.match(/^- /gm)?.length ?? 0;
    const hidden = [...preamble.matchAll(/^… and (\d+) more$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
    const { removed, shortened } = await cut(inheritedHistory(long), 500_000);
    assert.equal(shown + hidden, removed.length + shortened.length);
  });

  it("mentions large files", async () => {
    const large = file("image/png", `data:,${"A".repeat(MAX_FILE_URL)}`);
    assert.match(forkPreamble(await cut(inheritedHistory([user("u1", large)]))), /: 1 large file named only/);
  });
});

describe("the way a fork gets its history", () => {
  const auto: ForkOptions = { strategy: "auto", hasReplay: true };

  async function planOf(
    messages: readonly Message[],
    options: Partial<ForkOptions> = {},
    maxTokens?: number,
  ) {
    return planFork(await cut(inheritedHistory(messages), maxTokens), { ...auto, ...options });
  }

  it("is a replay whenever the server supports one", async () => {
    for (const messages of [[], turns(1), turns(300)]) assert.equal((await planOf(messages)).kind, "replay");
  });

  it("is, without replay, a copy if the conversation is short, complete and has no open call", async () => {
    const kindOf = async (messages: readonly Message[], maxTokens?: number) =>
      (await planOf(messages, { hasReplay: false }, maxTokens)).kind;
    assert.equal(await kindOf(turns(30)), "copy");
    assert.equal(await kindOf([]), "copy");
    assert.equal(await kindOf(turns(31)), "text");
    assert.equal(await kindOf(turns(1, "r".repeat(2_000))), "text");
    assert.equal(await kindOf(turns(3), 20), "text");
    assert.equal(await kindOf([...turns(1), user("u", "Fork."), inFlight]), "text");
    assert.equal(await kindOf([...turns(1), agent("r", {}, reasoning("Hm."), "So.")]), "text");
  });

  it("is no copy of a compacted conversation, unless the user chose a copy", async () => {
    const compacted = [
      ...turns(100),
      user("k", mark("compaction")),
      agent("s", { parentID: "k", summary: true }, "Summary"),
    ];
    assert.equal((await planOf(compacted, { hasReplay: false })).kind, "text");
    assert.equal((await planOf(compacted, { strategy: "fork" })).kind, "copy");
  });

  it("is a replay of the recent messages, starting with a prompt, with the older ones as text", async () => {
    const messages = turns(100);
    const plan = await planOf(messages);
    assert.ok(plan.kind === "replay");
    assert.deepEqual(
      [...plan.asText, ...plan.native].map(({ info }) => info.id),
      ids(messages),
    );
    assert.equal(plan.native[0]?.info.id, "u71");
    const small = await planOf(messages, { maxEvents: 16 });
    assert.deepEqual(small.kind === "replay" && ids(small.native), ["u98", "a98", "u99", "a99"]);
  });

  it("is a replay of the end of a turn that is too long", async () => {
    const steps = Array.from({ length: 100 }, (_, n) => agent(`a${n}`, {}, call(`c${n}`)));
    const plan = await planOf([user("u", "Go."), ...steps]);
    assert.ok(plan.kind === "replay");
    assert.deepEqual(ids(plan.native), ids(steps.slice(-74)));
    assert.equal(plan.asText[0]?.info.id, "u");
  });

  it("is a replay of messages only if all are recent", async () => {
    const plan = await planOf(turns(5), { strategy: "replay" });
    assert.deepEqual(plan.kind === "replay" && [plan.asText.length, plan.native.length], [0, 10]);
  });

  it("is text if the server cannot replay, or the strategy excludes it", async () => {
    for (const options of [
      { hasReplay: false, strategy: "auto" },
      { strategy: "fork" },
      { strategy: "replay", hasReplay: false },
    ] as const) {
      const plan = await planOf(turns(40, "r".repeat(2_000)), options);
      assert.deepEqual(plan.kind === "text" && plan.asText.length, 80);
    }
  });

  it("is a copy of any length if the user chose the server's own", async () => {
    assert.equal((await planOf(turns(500), { strategy: "fork" }, 1_000_000)).kind, "copy");
  });
});

describe("the preview of a fork", () => {
  it("gives counts, and shows what the child will see", async () => {
    const history = await cut(inheritedHistory(turns(100, "r".repeat(2_000))), 20_000);
    const plan = planFork(history, { strategy: "auto", hasReplay: true, maxEvents: 23 });
    const { text, tokensAfter, ...preview } = forkPreview(history, plan, { sourceTitle: "Source" });
    assert.deepEqual(preview, {
      kind: "replay",
      messagesBefore: 200,
      messagesAfter: 24,
      tokensBefore: history.tokensBefore,
      shortenedResults: 12,
      shortenedMessages: 0,
      leftOutFiles: 0,
      limits: { maxTokens: 20_000, maxToolResultChars: 1_500 },
    });
    assert.ok(tokensAfter.tokens <= 20_000);
    assert.ok(text.startsWith(forkPreamble(history, { sourceTitle: "Source" })));
    assert.ok(text.includes("User: Question 99\n\nAgent: Answer 99\n[Tool: read]"));
    assert.ok(!text.includes("Question 87\n\nAgent"));
  });

  it("of a copy counts all messages", async () => {
    const history = await cut(inheritedHistory(turns(2)));
    const preview = forkPreview(history, { kind: "copy" });
    assert.deepEqual([preview.kind, preview.messagesAfter], ["copy", 4]);
    assert.equal(preview.text, `${forkPreamble(history)}\n\n${transcriptText(history.messages)}`);
  });

  it("of an empty conversation shows the preamble alone", async () => {
    const history = await cut(inheritedHistory([]));
    assert.equal(forkPreview(history, { kind: "copy" }).text, forkPreamble(history));
  });
});
