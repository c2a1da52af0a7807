import { Emitter } from "../../../src/engine/event.ts";
import type {
  AssistantMessageInfo,
  Message,
  MessageInfo,
  Part,
  ToolState,
} from "../../../src/engine/server-model.ts";
import type { Subagent } from "../../../src/engine/subagent.ts";
import type { Task } from "../../../src/engine/task.ts";
import type { Transcript, TranscriptChange } from "../../../src/engine/transcript.ts";

export const NOW = new Date(2026, 5, 1, 9, 30).getTime();
export const TASK_ID = "ses_0123456789abcdefghijk7Qx";

export function fakeTask(facts: Partial<Task> = {}): Task {
  return {
    id: TASK_ID,
    revision: 1,
    description: "Find out why the nightly build is slow",
    agent: "build",
    model: { providerID: "anthropic", modelID: "claude-sonnet-4-5" },
    parentSessionID: "ses_parent",
    launchedBy: "person",
    isForked: false,
    batchID: "bat_1",
    toolCalls: 0,
    resumeCount: 0,
    status: "completed",
    promptMessageID: "msg_001",
    createdAt: NOW - 190_000,
    startedAt: NOW - 188_000,
    endedAt: NOW - 4_000,
    notice: { state: "none" },
    cost: 0.0473,
    tokens: { input: 5_210, output: 1_930, reasoning: 410, cacheRead: 38_400, cacheWrite: 2_100 },
    ...facts,
  };
}

/** A child session of the fake task, launched by OpenCode's own `task` tool. */
export function fakeSubagent(facts: Partial<Subagent> = {}): Subagent {
  return {
    launchedBy: "other",
    id: "ses_sub456789abcdefghijk8Ry",
    parentSessionID: TASK_ID,
    description: "Look for slow tests (@explore subagent)",
    agent: "explore",
    model: { providerID: "anthropic", modelID: "claude-sonnet-4-5" },
    status: "idle",
    createdAt: NOW - 90_000,
    startedAt: NOW - 90_000,
    endedAt: NOW - 30_000,
    toolCalls: 3,
    cost: 0.0121,
    tokens: { input: 1_210, output: 330, reasoning: 0, cacheRead: 8_400, cacheWrite: 0 },
    ...facts,
  };
}

/** A conversation that a test writes; listeners are notified of each change. */
export class FakeTranscript implements Transcript {
  readonly sessionID = TASK_ID;
  readonly messages: Message[] = [];
  private readonly changes = new Emitter<TranscriptChange>((error) => {
    throw error;
  });
  readonly onDidChange = this.changes.event;
  private count = 0;

  get followers(): number {
    return this.changes.size;
  }

  user(
    text: string,
    facts: { synthetic?: boolean; created?: number; metadata?: Record<string, unknown> } = {},
  ): this {
    const id = this.nextID("msg");
    const created = facts.created ?? NOW - 188_000;
    this.message({ role: "user", id, sessionID: TASK_ID, created, agent: "build" });
    this.part({
      type: "text",
      ...this.ids("prt", id),
      text,
      synthetic: facts.synthetic ?? false,
      metadata: facts.metadata,
    });
    return this;
  }

  assistant(facts: Partial<AssistantMessageInfo> = {}): this {
    this.message({
      role: "assistant",
      id: this.nextID("msg"),
      sessionID: TASK_ID,
      parentID: this.messages[0]?.info.id ?? "",
      created: NOW - 180_000,
      completed: NOW - 5_000,
      agent: "build",
      model: { providerID: "anthropic", modelID: "claude-sonnet-4-5" },
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
      summary: false,
      ...facts,
    });
    return this;
  }

  text(text: string): this {
    return this.part({ type: "text", ...this.ids("prt"), text, synthetic: false });
  }

  reasoning(text: string, start = NOW - 60_000, end: number | undefined = NOW - 48_000): this {
    return this.part({ type: "reasoning", ...this.ids("prt"), text, start, end });
  }

  /** @param launched the session of the subagent that the call launched */
  tool(tool: string, state: ToolState, launched?: string): this {
    const ids = this.ids("prt");
    const subagent = launched === undefined ? {} : { subagent: { sessionID: launched } };
    return this.part({ type: "tool", ...ids, tool, callID: `call_${ids.id}`, state, ...subagent });
  }

  ran(tool: string, input: Record<string, unknown>, output: string, title = "", ms = 420): this {
    return this.tool(tool, {
      status: "completed",
      input,
      output,
      title,
      start: NOW - 40_000,
      end: NOW - 40_000 + ms,
    });
  }

  file(filename: string, mime: string): this {
    return this.part({ type: "file", ...this.ids("prt"), filename, mime, url: "file:///nowhere" });
  }

  /** Appends to the newest part. */
  stream(delta: string): void {
    const message = this.messages.at(-1)!;
    const part = message.parts.at(-1)!;
    if (part.type !== "text" && part.type !== "reasoning") throw new Error("only text grows");
    this.put(message, { ...part, text: part.text + delta });
    this.changes.fire({ type: "text", messageID: message.info.id, partID: part.id, delta });
  }

  part(part: Part): this {
    const message = this.messages.find(({ info }) => info.id === part.messageID)!;
    this.put(message, part);
    this.changes.fire({ type: "part", part });
    return this;
  }

  removePart(messageID: string, partID: string): void {
    const index = this.messages.findIndex(({ info }) => info.id === messageID);
    const { info, parts } = this.messages[index]!;
    this.messages[index] = { info, parts: parts.filter(({ id }) => id !== partID) };
    this.changes.fire({ type: "part-removed", messageID, partID });
  }

  removeMessage(messageID: string): void {
    this.messages.splice(
      this.messages.findIndex(({ info }) => info.id === messageID),
      1,
    );
    this.changes.fire({ type: "message-removed", messageID });
  }

  reset(): void {
    this.changes.fire({ type: "reset", messages: this.messages });
  }

  message(info: MessageInfo): void {
    const index = this.messages.findIndex((message) => message.info.id === info.id);
    if (index < 0) this.messages.push({ info, parts: [] });
    else this.messages[index] = { info, parts: this.messages[index]!.parts };
    this.changes.fire({ type: "message", info });
  }

  dispose(): void {
    this.changes.dispose();
  }

  private put(message: Message, part: Part): void {
    const parts = message.parts as Part[];
    const index = parts.findIndex(({ id }) => id === part.id);
    if (index < 0) parts.push(part);
    else parts[index] = part;
  }

  private ids(
    prefix: string,
    messageID = this.messages.at(-1)!.info.id,
  ): { id: string; sessionID: string; messageID: string } {
    return { id: this.nextID(prefix), sessionID: TASK_ID, messageID };
  }

  private nextID(prefix: string): string {
    return `${prefix}_${String(++this.count).padStart(3, "0")}`;
  }
}
