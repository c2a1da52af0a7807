import type {
  AssistantMessageInfo,
  AttachedFile,
  FilePart,
  Message,
  OtherPart,
  Part,
  TextPart,
  ToolPart,
  ToolState,
} from "../../../../src/engine/server-model.ts";
import type { InheritedHistory } from "../../../../src/engine/fork/inherited-history.ts";
import type { TokenCounter } from "../../../../src/engine/token-counter.ts";
import { utf8Length } from "../../../../src/engine/utf8.ts";
import { NO_TOKENS } from "../builders.ts";

/** The facts of a part; its IDs are those of its message. */
type Unplaced<T> = T extends unknown ? Omit<T, "sessionID" | "messageID"> : never;
export type PartDraft = Unplaced<Part>;

let made = 0;

export function text(text: string, facts: Partial<TextPart> = {}): Unplaced<TextPart> {
  return { id: `prt_${++made}`, type: "text", text, synthetic: false, ...facts };
}

export function call(
  callID: string,
  state: Partial<ToolState> & {
    readonly output?: string;
    readonly attachments?: readonly AttachedFile[];
    readonly error?: string;
    readonly partialOutput?: string;
    readonly isCleared?: boolean;
  } = {},
  tool = "read",
): Unplaced<ToolPart> {
  const input = state.input ?? { path: `${callID}.ts` };
  const { attachments, partialOutput, isCleared } = state;
  const ended = { input, start: 1, end: 2 };
  const full =
    state.status === "pending"
      ? ({ status: "pending", input } as const)
      : state.status === "running"
        ? ({ status: "running", input, start: 7 } as const)
        : state.error !== undefined
          ? ({
              status: "error",
              ...ended,
              error: state.error,
              ...(partialOutput !== undefined && { partialOutput }),
            } as const)
          : ({
              status: "completed",
              ...ended,
              title: "",
              output: state.output ?? "done",
              ...(attachments && { attachments }),
              ...(isCleared && { isCleared }),
            } as const);
  return { id: `prt_${++made}`, type: "tool", tool, callID, state: full };
}

export function file(mime: string, url: string, filename?: string): Unplaced<FilePart> {
  return { id: `prt_${++made}`, type: "file", mime, url, filename };
}

export function mark(kind: string, facts: Partial<OtherPart> = {}): Unplaced<OtherPart> {
  return { id: `prt_${++made}`, type: "other", kind, ...facts };
}

export function reasoning(text: string): PartDraft {
  return { id: `prt_${++made}`, type: "reasoning", text };
}

/** A prompt; a string is its text. */
export function user(id: string, ...parts: readonly (PartDraft | string)[]): Message {
  return {
    info: { role: "user", id, sessionID: "ses_source", created: 0, agent: "build" },
    parts: placed(id, parts),
  };
}

/** An answer; a string is its text. */
export function agent(
  id: string,
  facts: Partial<AssistantMessageInfo>,
  ...parts: readonly (PartDraft | string)[]
): Message {
  return {
    info: {
      role: "assistant",
      id,
      sessionID: "ses_source",
      parentID: "",
      created: 0,
      completed: 1,
      agent: "build",
      model: { providerID: "fake", modelID: "m" },
      finish: "end",
      cost: 0,
      tokens: NO_TOKENS,
      summary: false,
      ...facts,
    },
    parts: placed(id, parts),
  };
}

function placed(messageID: string, parts: readonly (PartDraft | string)[]): Part[] {
  return parts.map((part) => ({
    ...(typeof part === "string" ? text(part) : part),
    sessionID: "ses_source",
    messageID,
  }));
}

/** The messages in this order, a second apart. */
export function inOrder(...messages: readonly Message[]): readonly Message[] {
  return messages.map(({ info, parts }, index) => ({
    info: { ...info, created: 1_000 * (index + 1) },
    parts,
  }));
}

export function history(...messages: readonly Message[]): InheritedHistory {
  return {
    messages,
    openCalls: 0,
    hasLaunch: false,
    leftOutFiles: 0,
    isWhole: true,
    sourceEvents: messages.length,
  };
}

export function ids(messages: readonly Message[]): string[] {
  return messages.map(({ info }) => info.id);
}

/** All texts and results of a message. */
export function words({ parts }: Message): string {
  return parts.map((part) => (part.type === "text" ? part.text : resultIn(part))).join("\n");
}

export function resultIn(part: Part | undefined): string {
  if (part?.type !== "tool") return "";
  return part.state.status === "completed"
    ? part.state.output
    : part.state.status === "error"
      ? part.state.error
      : "";
}

/** Counts every UTF-8 byte as a token, and records its calls. */
export class ByteCounter implements TokenCounter {
  readonly asked: string[] = [];
  calls = 0;

  constructor(private readonly bytesPerToken = 1) {}

  async count(texts: readonly string[]): Promise<readonly number[]> {
    this.calls++;
    this.asked.push(...texts);
    return texts.map((text) => this.tokens(text));
  }

  tokens(text: string): number {
    return Math.ceil(utf8Length(text) / this.bytesPerToken);
  }

  /** The total as the limit defines it: all texts of all messages, including arguments and results of calls. */
  total(messages: readonly Message[]): number {
    const texts = messages.flatMap(({ parts }) => parts.flatMap(textsOf));
    return texts.reduce((sum, text) => sum + this.tokens(text), 0);
  }
}

function textsOf(part: Part): string[] {
  if (part.type === "text") return [part.text];
  return part.type === "tool" ? [JSON.stringify(part.state.input) + resultIn(part)] : [];
}

/** Half of a surrogate pair, without the other half. */
export const HALF_PAIR = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;
