import { stripVTControlCharacters } from "node:util";
import type { Disposable } from "../../engine/event.ts";
import { findExpression } from "../../engine/find-text.ts";
import { visible } from "../../engine/plain-text.ts";
import type { Child } from "../../engine/subagent.ts";
import type { Transcript, TranscriptChange } from "../../engine/transcript.ts";
import {
  dispatch,
  TOOL_OUTPUT,
  type ConversationLink,
  type ConversationMessage,
  type ConversationQuestion,
  type Handlers,
  type LinkTarget,
} from "../../protocol/output.ts";
import type { Conversation } from "../../rpc/contract.ts";
import { ChangeBatch } from "./change-batch.ts";
import { pageOf, perspectiveOf, toEntryChanges, type Perspective } from "./entries.ts";
import { toolDiff } from "./tool-diff.ts";
import { findInTools, findTool, toolFile, toolText, toToolDetail } from "./tool-model.ts";
import { transcriptMarkdown } from "./transcript-markdown.ts";

/** Characters of the first page of entries, and of each later one. */
const FIRST_PAGE_SIZE = 60_000;
const NEXT_PAGE_SIZE = 400_000;

/** Whose conversation it is. */
export interface Speaker {
  readonly child: Child | undefined;
  /** The folder that the agent works in. */
  readonly folder: string;
}

/** Sends one panel what a session's messages show, and follows them. */
export class ShownConversation implements Conversation {
  private readonly batch = new ChangeBatch((changes) => this.send({ type: "changes", changes }));
  private readonly subscription: Disposable;
  private perspective: Perspective | undefined;
  /** Whether the panel has asked for the newest entries, which changes build on. */
  private isShown = false;

  private readonly answers: Handlers<ConversationQuestion> = {
    newest: () => {
      this.isShown = true;
      this.sendPage();
    },
    earlier: ({ before }) => this.sendPage(before),
    "tool-detail": ({ id }) => {
      const tool = findTool(this.transcript.messages, id);
      if (tool) this.send({ type: "tool-detail", detail: toToolDetail(tool, this.speaker().folder) });
    },
    "find-in-tools": ({ query }) => {
      const expression = findExpression(query);
      const { messages } = this.transcript;
      const counts = expression ? findInTools(messages, expression, this.speaker().folder) : {};
      this.send({ type: "found-in-tools", query, counts });
    },
  };

  constructor(
    private readonly transcript: Transcript,
    private readonly speaker: () => Speaker,
    private readonly send: (message: ConversationMessage) => void,
  ) {
    this.subscription = transcript.onDidChange((change) => this.onDidChange(change));
  }

  ask(question: ConversationQuestion): void {
    dispatch(this.answers, question);
  }

  async open(link: ConversationLink): Promise<LinkTarget | undefined> {
    const { transcript } = this;
    if (link.type === "open-transcript") {
      const title = this.speaker().child?.description ?? transcript.sessionID;
      return document(`${title}.md`, transcriptMarkdown(title, transcript.messages));
    }
    const tool = findTool(transcript.messages, link.id);
    if (!tool) return undefined;
    switch (link.type) {
      case "open-field": {
        const { field } = link;
        const path = toolFile(tool, field);
        if (path !== undefined) return { type: "file", path };
        const name = `${tool.tool} ${field === TOOL_OUTPUT ? "output" : field}.txt`;
        return document(name, toolText(tool, field), stripVTControlCharacters);
      }
      case "open-diff":
        return document(`${tool.tool}.diff`, toolDiff(tool), visible);
      case "open-session": {
        const id = tool.subagent?.sessionID;
        return id === undefined ? undefined : { type: "session", id };
      }
    }
  }

  dispose(): void {
    this.batch.drop();
    this.subscription.dispose();
    this.transcript.dispose();
  }

  private onDidChange(change: TranscriptChange): void {
    if (!this.isShown) return;
    if (change.type === "reset") {
      this.perspective = undefined;
      this.sendPage();
    } else
      for (const entryChange of toEntryChanges(change, this.transcript, this.currentPerspective()))
        this.batch.add(entryChange);
  }

  /** Kept once the task's own prompt is known, because the prompt comes before anything else the task does. */
  private currentPerspective(): Perspective {
    if (this.perspective) return this.perspective;
    const { child, folder } = this.speaker();
    const perspective = perspectiveOf(child, this.transcript.messages, folder);
    if (child && perspective.promptMessageID !== undefined) this.perspective = perspective;
    return perspective;
  }

  /** Sends the newest entries, or those before an entry that the panel has. */
  private sendPage(before?: string): void {
    // Collected changes must not reach the panel after a newer state of the same entries.
    this.batch.flush();
    const size = before === undefined ? FIRST_PAGE_SIZE : NEXT_PAGE_SIZE;
    const page = pageOf(this.transcript.messages, this.currentPerspective(), size, before);
    if (page) this.send({ type: "conversation", ...page, before });
    // The panel didn't know yet that the entry it named was removed.
    else if (before !== undefined) this.sendPage();
  }
}

function document(
  name: string,
  text: string | undefined,
  clean = (text: string): string => text,
): LinkTarget | undefined {
  return text === undefined ? undefined : { type: "document", name, text: clean(text) };
}
