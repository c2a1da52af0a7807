import { stripVTControlCharacters } from "node:util";

import type { OpenRequest } from "../../engine/engine.ts";
import { ServerFailure } from "../../engine/ports.ts";
import { sentence, type Text } from "../../engine/sentence.ts";
import type { Message, PendingRequest, RequestAnswer } from "../../engine/server-model.ts";
import { isRunning, isTask, type Child } from "../../engine/subagent.ts";
import { shortID, type Task } from "../../engine/task.ts";
import type { Transcript, TranscriptChange } from "../../engine/transcript.ts";
import { lastAnswer } from "../../engine/turn.ts";
import { findExpression } from "../../engine/find-text.ts";
import { isSafeLink, parsePanelMessage } from "../../protocol/output-guard.ts";
import {
  dispatch,
  type FoundAt,
  TOOL_OUTPUT,
  type Handlers,
  type HostMessage,
  type PanelMessage,
} from "../../protocol/output.ts";
import { visible } from "../plain-text.ts";
import { proposedDiff } from "../requests/request-facts.ts";
import { ChangeBatch } from "./change-batch.ts";
import { pathAndPosition } from "./file-reference.ts";
import { Outbox } from "./outbox.ts";
import type { OutputEditor, OutputParts } from "./output-parts.ts";
import { findInTools, findTool, launchedSession, toolFile, toolText, toToolDetail } from "./tool-model.ts";
import {
  isWithin,
  pageOf,
  type Perspective,
  perspectiveOf,
  toEntryChanges,
  toRequestView,
  toTaskView,
} from "./view-model.ts";
import { toolDiff } from "./tool-diff.ts";
import { transcriptMarkdown } from "./transcript-markdown.ts";

/** Characters of the first page of entries, and of each later one. */
const FIRST_PAGE_SIZE = 60_000;
const NEXT_PAGE_SIZE = 400_000;

/** Shows one task in one panel: sends its state and changes to the page, and does what the page requests. */
export class OutputSession {
  private readonly subscriptions: { dispose(): void }[];
  private readonly batch = new ChangeBatch((changes) => this.post({ type: "changes", changes }));
  private conversation: { transcript: Transcript; perspective: Perspective | undefined } | undefined;
  private loading: Promise<void> | undefined;
  /** The inputs of the tool calls that wait for permission, by request ID; undefined while unknown. */
  private readonly toolInputs = new Map<string, Readonly<Record<string, unknown>> | undefined>();
  private isRetrying = false;
  private readonly outbox: Outbox;
  /** Whether the page is loaded and listening. */
  private listening = false;
  private disposed = false;
  private toFind: FoundAt | undefined;

  private readonly handlers: Handlers<PanelMessage> = {
    ready: () => this.begin(),
    earlier: ({ before }) => this.sendConversation(before),
    "tool-detail": ({ id }) => {
      const tool = findTool(this.messages, id);
      if (tool) this.post({ type: "tool-detail", detail: toToolDetail(tool, this.editor.folder()) });
    },
    "open-field": ({ id, field }) => this.openField(id, field),
    "open-diff": ({ id }) => this.openDiff(id),
    "open-path": ({ path }) => {
      const { file, position } = pathAndPosition(path);
      this.orNote(this.editor.openFile(file, position));
    },
    image: ({ path }) =>
      void this.parts.known.image(this.taskID, path).then(
        (data) => this.post({ type: "image", path, data }),
        (error: unknown) => this.post({ type: "image", path, problem: this.editor.describe(error) }),
      ),
    "open-link": ({ url }) => {
      if (isSafeLink(url)) this.editor.openExternal(url);
    },
    "open-session": ({ id }) => {
      const tool = findTool(this.messages, id);
      const launched = tool && launchedSession(tool);
      if (launched !== undefined) this.editor.openSession(launched);
    },
    "find-in-tools": ({ query }) => {
      const expression = findExpression(query);
      const counts = expression ? findInTools(this.messages, expression, this.editor.folder()) : {};
      this.post({ type: "found-in-tools", query, counts });
    },
    "open-transcript": () => this.editor.openDocument(`${this.title}.md`, this.markdown()),
    "copy-conversation": () => {
      this.editor.copyText(this.markdown());
      this.note(sentence("Copied the whole conversation, including tool calls."));
    },
    "copy-result": () => this.orNote(this.copyResult()),
    send: ({ text, how }) => void this.outbox.send(text, how),
    withdraw: () => void this.outbox.withdraw(),
    "open-task": ({ id }) => {
      if (this.parts.known.child(id)) this.editor.openSession(id);
      else this.note(sentence("Task {0} was cleared or deleted.", shortID(id)));
    },
    run: ({ command }) => void (command === "retry" ? this.retry() : this.editor.run(command)),
    reply: ({ id, reply }) => void this.reply(id, reply),
  };

  constructor(
    readonly taskID: string,
    private readonly parts: OutputParts,
    private readonly editor: OutputEditor,
  ) {
    const { known } = parts;
    this.outbox = new Outbox(taskID, parts, editor, (message) => {
      this.post(message);
      return this.listening;
    });
    this.subscriptions = [
      known.onDidChange(({ id, before, after }) => {
        if (id === taskID || (after ?? before)?.insteadOf === taskID) this.sendTask();
      }),
      known.onDidChangeSubagent(({ id }) => {
        if (id === taskID) this.sendTask();
      }),
      known.onDidChangeRequests(() => this.sendRequests()),
      editor.onDidChangeConnection(() => {
        this.sendConnection();
        this.sendTask();
        this.sendRequests();
        if (!this.conversation) void this.load();
      }),
    ];
    this.sendTitle();
  }

  /** Shows the page's box for finding text, at a match if there is one, as soon as the page is listening. */
  find(at?: FoundAt): void {
    if (this.listening) this.post({ type: "find", at });
    else this.toFind = at;
  }

  /** Handles a message of the page; invalid ones are logged and dropped. */
  receive(value: unknown): void {
    const message = parsePanelMessage(value);
    if (message) dispatch(this.handlers, message);
    else this.parts.logger.warn("Ignored an invalid message from the output panel.");
  }

  /** Called when the page is discarded; a new page sends `ready`. */
  pause(): void {
    this.listening = false;
    this.batch.drop();
  }

  dispose(): void {
    this.disposed = true;
    this.pause();
    for (const subscription of this.subscriptions) subscription.dispose();
    this.conversation?.transcript.dispose();
    this.conversation = undefined;
  }

  private get child(): Child | undefined {
    return this.parts.known.child(this.taskID);
  }

  private get title(): string {
    return this.child?.description ?? this.taskID;
  }

  private get messages(): readonly Message[] {
    return this.conversation?.transcript.messages ?? [];
  }

  private begin(): void {
    this.listening = true;
    this.post({ type: "setup", translations: this.editor.translations, now: Date.now() });
    this.sendConnection();
    this.sendTask();
    this.sendRequests();
    if (this.isRetrying) this.sendRetrying();
    this.outbox.deliver();
    if (this.conversation) this.sendConversation();
    else void this.load();
    if (this.toFind) this.find(this.toFind);
    this.toFind = undefined;
  }

  /** Loads the conversation and follows it, unless that is done or in progress. */
  private load(): Promise<void> {
    this.loading ??= this.follow().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async follow(): Promise<void> {
    if (this.editor.connection() !== "connected") return;
    try {
      const transcript = await this.parts.known.transcript(this.taskID);
      if (this.disposed) {
        transcript.dispose();
        return;
      }
      this.conversation = { transcript, perspective: undefined };
      this.subscriptions.push(transcript.onDidChange((change) => this.onDidChangeTranscript(change)));
      this.sendConversation();
    } catch (error) {
      if (this.disposed) return;
      if (error instanceof ServerFailure && error.reason === "not-found") {
        this.post({ type: "gone" });
        return;
      }
      this.parts.logger.error(`Couldn't load the conversation of ${this.taskID}.`, error);
      this.post({ type: "load-failed", message: this.editor.describe(error) });
    }
  }

  private onDidChangeTranscript(change: TranscriptChange): void {
    if (!this.conversation || !this.listening) return;
    if (change.type === "reset") {
      this.conversation.perspective = undefined;
      this.sendConversation();
      return;
    }
    const { transcript } = this.conversation;
    for (const entryChange of toEntryChanges(change, transcript, this.perspective()))
      this.batch.add(entryChange);
  }

  /** Cached once the task's own prompt is known, because the prompt comes before anything else the task does. */
  private perspective(): Perspective {
    const { conversation } = this;
    if (conversation?.perspective) return conversation.perspective;
    const child = this.child;
    const perspective = perspectiveOf(child, this.messages, this.editor.folder());
    if (conversation && child && perspective.promptMessageID !== undefined)
      conversation.perspective = perspective;
    return perspective;
  }

  /** Sends the newest entries, or those before an entry that the page has. */
  private sendConversation(before?: string): void {
    // Collected changes must not reach the page after a newer state of the same entries.
    this.batch.flush();
    const size = before === undefined ? FIRST_PAGE_SIZE : NEXT_PAGE_SIZE;
    const page = pageOf(this.messages, this.perspective(), size, before);
    if (page) this.post({ type: "conversation", ...page, before });
    // The page didn't know yet that the entry it named was removed.
    else if (before !== undefined) this.sendConversation();
  }

  private sendTask(): void {
    this.sendTitle();
    const child = this.child;
    const { editor } = this;
    if (child)
      this.post({
        type: "task",
        task: toTaskView(this.asShown(child), {
          translate: (text) => editor.translate(text),
          folder: editor.folder(),
          successors: this.successors(child),
        }),
      });
    else if (this.editor.connection() === "connected") this.post({ type: "gone" });
  }

  /** With the model of its session if it was launched without one, and with the time of its earlier turns. */
  private asShown(child: Child): Child {
    const model = child.model ?? this.parts.known.session(child.id)?.model;
    const { worked = 0, endedAt, startedAt } = isTask(child) ? child : { ...child, worked: 0 };
    const earlier = isRunning(child) ? worked : worked - ((endedAt ?? startedAt) - startedAt);
    return { ...child, model, startedAt: startedAt - Math.max(0, earlier) };
  }

  /** The tasks launched in place of this one. */
  private successors({ parentSessionID }: Child): readonly Task[] {
    const siblings = this.parts.known.children(parentSessionID).filter(isTask);
    return siblings.filter(({ insteadOf }) => insteadOf === this.taskID);
  }

  private sendTitle(): void {
    const child = this.child;
    if (child) this.editor.setTitle(child.description);
  }

  /** The requests of this session and its descendants. */
  private requests(): readonly OpenRequest[] {
    const { known } = this.parts;
    return known.openRequests().filter(({ child }) => isWithin(known, child, this.taskID));
  }

  private sendRequests(): void {
    // Without a connection the requests are unknown, and text typed into them must be kept.
    if (this.editor.connection() !== "connected") return;
    const open = this.requests();
    const requests = open.map((one) =>
      toRequestView(
        one,
        this.taskID,
        this.editor.wording,
        this.toolInputs.get(one.request.id),
        this.editor.folder(),
      ),
    );
    this.post({ type: "requests", requests });
    for (const id of this.toolInputs.keys())
      if (!requests.some((request) => request.id === id)) this.toolInputs.delete(id);
    if (this.listening)
      for (const { request } of open) if (!this.toolInputs.has(request.id)) void this.readToolInput(request);
  }

  /** Most agents give their reason only in the input of the tool call. The request is shown without waiting for it. */
  private async readToolInput(request: PendingRequest): Promise<void> {
    this.toolInputs.set(request.id, undefined);
    const input = await this.parts.known.toolInput(request).catch(() => undefined);
    if (!input || this.disposed || !this.toolInputs.has(request.id)) return;
    this.toolInputs.set(request.id, input);
    this.sendRequests();
  }

  private sendConnection(): void {
    this.post({ type: "connection", connection: this.editor.connection() });
  }

  private async retry(): Promise<void> {
    if (this.isRetrying) return;
    this.isRetrying = true;
    const launched = await this.editor.run("retry");
    this.isRetrying = false;
    this.sendRetrying();
    if (launched !== undefined) this.note(sentence("Launched a new task with the same prompt."));
  }

  private sendRetrying(): void {
    this.post({ type: "retrying", retrying: this.isRetrying });
  }

  private async copyResult(): Promise<void> {
    const child = this.child;
    const answer =
      child && isTask(child) ? (await this.parts.tasks.output(child.id)).result : lastAnswer(this.messages);
    if (answer) this.editor.copyText(answer);
    this.note(answer ? sentence("Copied the result") : sentence("There is no result to copy."));
  }

  private async reply(id: string, reply: RequestAnswer): Promise<void> {
    const open = this.findRequest(id);
    try {
      if (open) await this.parts.tasks.answer(open.request, reply);
      else this.noteAnswered();
    } catch (error) {
      if (!this.findRequest(id) || (error instanceof ServerFailure && error.reason === "not-found"))
        this.noteAnswered();
      else {
        this.parts.logger.error(`Couldn't answer request ${id}.`, error);
        this.post({ type: "reply-failed", id, error: this.editor.describe(error) });
      }
    }
  }

  private findRequest(id: string): OpenRequest | undefined {
    return this.requests().find(({ request }) => request.id === id);
  }

  private noteAnswered(): void {
    this.sendRequests();
    this.note(sentence("This request is no longer waiting."));
  }

  private markdown(): string {
    return transcriptMarkdown(this.title, this.messages);
  }

  private openField(id: string, field: string): void {
    const tool = findTool(this.messages, id);
    const path = tool && toolFile(tool, field);
    if (path !== undefined) return this.orNote(this.editor.openFile(path));
    const text = tool && toolText(tool, field);
    if (text === undefined) return;
    const name = `${tool?.tool} ${field === TOOL_OUTPUT ? "output" : field}.txt`;
    this.editor.openDocument(name, stripVTControlCharacters(text));
  }

  private openDiff(id: string): void {
    const tool = findTool(this.messages, id);
    const request = this.findRequest(id)?.request;
    const diff = tool ? toolDiff(tool) : request && proposedDiff(request);
    if (diff !== undefined) this.editor.openDocument(`${tool?.tool ?? "changes"}.diff`, visible(diff));
  }

  private orNote(action: Promise<void>): void {
    action.catch((error: unknown) => this.note(this.editor.describe(error)));
  }

  private note(text: Text): void {
    this.post({ type: "note", text: this.editor.translate(text) });
  }

  private post(message: HostMessage): void {
    if (this.listening) this.editor.post(message);
  }
}
