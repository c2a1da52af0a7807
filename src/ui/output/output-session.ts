import { stripVTControlCharacters } from "node:util";

import type { OpenRequest } from "../../engine/engine.ts";
import type { Event } from "../../engine/event.ts";
import { ServerFailure, type Logger } from "../../engine/ports.ts";
import { sentence, type Text } from "../../engine/sentence.ts";
import type { Message, PendingRequest, RequestAnswer } from "../../engine/server-model.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Transcript, TranscriptChange } from "../../engine/transcript.ts";
import { lastAnswer } from "../../engine/turn.ts";
import { dispatch, type Handlers } from "../../protocol/dispatch.ts";
import { isSafeLink, parsePanelMessage } from "../../protocol/output-guard.ts";
import {
  TOOL_OUTPUT,
  type ConnectionView,
  type HostMessage,
  type PanelMessage,
  type RefusedPrompt,
} from "../../protocol/output.ts";
import { visible } from "../plain-text.ts";
import { proposedDiff } from "../requests/request-facts.ts";
import { ChangeBatch } from "./change-batch.ts";
import { pathAndPosition, type FilePosition } from "./file-reference.ts";
import { isWithin, toRequestView, type RequestWording } from "./request-view.ts";
import { toolDiff } from "./tool-diff.ts";
import { transcriptMarkdown } from "./transcript-markdown.ts";
import {
  findTool,
  pageOf,
  perspectiveOf,
  toEntryChanges,
  toolFile,
  toolText,
  toTaskView,
  toToolDetail,
  type Perspective,
} from "./view-model.ts";

/** Where the panel gets what it shows. */
export interface OutputSource {
  /** The task or subagent that the session of this ID is. */
  child(id: string): Child | undefined;
  transcript(sessionID: string): Promise<Transcript>;
  /** Fires with the ID of the task or subagent. */
  readonly onDidChangeChild: Event<string>;
  /** All that waits for a person, of any session. */
  requests(): readonly OpenRequest[];
  readonly onDidChangeRequests: Event<void>;
  /** What the tool was called with that asks for this; undefined: not known. */
  toolInput(request: PendingRequest): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Of the folder that the session is of. */
  connectionKind(sessionID: string): ConnectionView;
  readonly onDidChangeConnection: Event<void>;
}

/** What a person can do from the panel; `id` is that of the task or subagent. */
export interface OutputActions {
  cancel(id: string): void;
  /** Resolves once the server took the prompt. */
  resume(id: string, prompt: string): Promise<void>;
  fork(id: string): void;
  /** Resolves once that is over: with whether a new task was launched. */
  retry(id: string): Promise<boolean>;
  adopt(id: string): void;
  showChanges(id: string): void;
  openInTerminal(id: string): void;
  /** Rejects where the answer was not taken. */
  reply(request: PendingRequest, reply: RequestAnswer): Promise<void>;
  /** The folder that the session is of. */
  connect(id: string): void;
  /** The final answer of a task, as far as there is one. */
  result(id: string): Promise<string | undefined>;
  copyText(text: string): void;
  openExternal(url: string): void;
  /** Rejects with an error whose message says why the file was not opened. */
  openFile(id: string, path: string, position?: FilePosition): Promise<void>;
}

/** What carries a session's messages, and shows text that is too long for it. */
export interface OutputSurface {
  post(message: HostMessage): void;
  setTitle(title: string): void;
  /** `name` ends in an extension that tells the kind of text. */
  openDocument(name: string, text: string): void;
}

/** How a session speaks to the person. */
export interface OutputLanguage {
  /** What the page says, by the English text. */
  readonly translations: Readonly<Record<string, string>>;
  readonly requests: RequestWording;
  /** What an error says. */
  describe(error: unknown): string;
  translate(text: Text): string;
}

/** Characters of the page that is shown first, and of each one that follows it. */
const FIRST_PAGE_SIZE = 60_000;
const NEXT_PAGE_SIZE = 400_000;
/** Changes within so many milliseconds are sent together: about two frames of a screen. */
const BATCH_MS = 30;

/** One task shown in one panel: tells the page what there is and what changes, and does what the page asks for. */
export class OutputSession {
  private readonly subscriptions: { dispose(): void }[];
  private readonly batch = new ChangeBatch();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private conversation: { transcript: Transcript; perspective: Perspective | undefined } | undefined;
  private loading: Promise<void> | undefined;
  /** What the tools that ask were called with, by request; undefined while that is not known. */
  private readonly toolInputs = new Map<string, Readonly<Record<string, unknown>> | undefined>();
  private isRetrying = false;
  /** The follow-up that was not taken, until the page has it back. */
  private refused: RefusedPrompt | undefined;
  /** The page exists and listens. */
  private listening = false;
  private disposed = false;

  private readonly handlers: Handlers<PanelMessage> = {
    ready: () => this.begin(),
    reload: () => this.begin(),
    earlier: ({ before }) => this.sendEarlier(before),
    "tool-detail": ({ id }) => {
      const tool = findTool(this.messages, id);
      if (tool) this.post({ type: "tool-detail", detail: toToolDetail(tool) });
    },
    "open-tool-text": ({ id, field }) => {
      const tool = findTool(this.messages, id);
      const text = tool && toolText(tool, field);
      if (tool && text !== undefined)
        this.surface.openDocument(
          `${tool.tool} ${field === TOOL_OUTPUT ? "output" : field}.txt`,
          stripVTControlCharacters(text),
        );
    },
    "open-diff": ({ id }) => this.openDiff(id),
    "open-tool-file": ({ id, field }) => {
      const tool = findTool(this.messages, id);
      const path = tool && toolFile(tool, field);
      if (path !== undefined) this.orNote(this.actions.openFile(this.taskID, path));
    },
    "open-path": ({ path }) => {
      const { file, position } = pathAndPosition(path);
      this.orNote(this.actions.openFile(this.taskID, file, position));
    },
    "open-link": ({ url }) => {
      if (isSafeLink(url)) this.actions.openExternal(url);
    },
    "open-transcript": () => {
      const title = this.source.child(this.taskID)?.description ?? this.taskID;
      this.surface.openDocument(`${title}.md`, transcriptMarkdown(title, this.messages));
    },
    "copy-result": () => this.orNote(this.copyResult()),
    cancel: () => this.actions.cancel(this.taskID),
    resume: ({ prompt }) => void this.resume(prompt),
    fork: () => this.actions.fork(this.taskID),
    retry: () => void this.retry(),
    adopt: () => this.actions.adopt(this.taskID),
    "show-changes": () => this.actions.showChanges(this.taskID),
    "open-terminal": () => this.actions.openInTerminal(this.taskID),
    reply: ({ id, reply }) => void this.reply(id, reply),
    connect: () => this.actions.connect(this.taskID),
  };

  constructor(
    readonly taskID: string,
    private readonly source: OutputSource,
    private readonly actions: OutputActions,
    private readonly surface: OutputSurface,
    private readonly language: OutputLanguage,
    private readonly log: Logger,
  ) {
    this.subscriptions = [
      source.onDidChangeChild((id) => {
        if (id === taskID) this.sendTask();
      }),
      source.onDidChangeRequests(() => this.sendRequests()),
      source.onDidChangeConnection(() => {
        this.sendConnection();
        this.sendTask();
        this.sendRequests();
        if (!this.conversation) void this.load();
      }),
    ];
    this.sendTitle();
  }

  /** Takes a message of the page; anything else is logged and dropped. */
  receive(value: unknown): void {
    const message = parsePanelMessage(value);
    if (message) dispatch(this.handlers, message);
    else this.log.warn("The output panel sent a message that does not fit and was ignored.");
  }

  /** The page is gone for now; it says `ready` when it is back. */
  pause(): void {
    this.listening = false;
    this.dropChanges();
  }

  dispose(): void {
    this.disposed = true;
    this.pause();
    for (const subscription of this.subscriptions) subscription.dispose();
    this.conversation?.transcript.dispose();
    this.conversation = undefined;
  }

  private get messages(): readonly Message[] {
    return this.conversation?.transcript.messages ?? [];
  }

  private begin(): void {
    this.listening = true;
    this.post({ type: "setup", translations: this.language.translations, now: Date.now() });
    this.sendConnection();
    this.sendTask();
    this.sendRequests();
    if (this.isRetrying) this.sendRetrying();
    this.giveBack();
    if (this.conversation) this.sendConversation();
    else void this.load();
  }

  /** Reads the conversation and follows it, unless that is done or going on. */
  private load(): Promise<void> {
    this.loading ??= this.follow().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async follow(): Promise<void> {
    if (this.source.connectionKind(this.taskID) !== "connected") return;
    try {
      const transcript = await this.source.transcript(this.taskID);
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
      this.log.error(`The conversation of ${this.taskID} could not be loaded.`, error);
      this.post({ type: "load-failed", message: this.language.describe(error) });
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
    if (!this.batch.isEmpty) this.timer ??= setTimeout(() => this.sendChanges(), BATCH_MS);
  }

  /** Stays once the task's own prompt is known, which is first of all that the task does. */
  private perspective(): Perspective {
    const { conversation } = this;
    if (conversation?.perspective) return conversation.perspective;
    const child = this.source.child(this.taskID);
    const perspective = perspectiveOf(child, this.messages);
    if (conversation && child && perspective.promptMessageID !== undefined)
      conversation.perspective = perspective;
    return perspective;
  }

  private sendConversation(): void {
    this.dropChanges();
    const page = pageOf(this.messages, this.perspective(), FIRST_PAGE_SIZE);
    if (page) this.post({ type: "conversation", ...page });
  }

  private sendEarlier(before: string): void {
    // What waits must not reach the page after a newer state of the same entries.
    this.sendChanges();
    const page = pageOf(this.messages, this.perspective(), NEXT_PAGE_SIZE, before);
    if (page) this.post({ type: "earlier", ...page });
    // The page asked before it heard that the entry it asked by is gone.
    else this.sendConversation();
  }

  private sendChanges(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.batch.isEmpty) this.post({ type: "changes", changes: this.batch.take() });
  }

  private dropChanges(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.batch.take();
  }

  private sendTask(): void {
    this.sendTitle();
    const child = this.source.child(this.taskID);
    if (child) this.post({ type: "task", task: toTaskView(child, (text) => this.language.translate(text)) });
    else if (this.source.connectionKind(this.taskID) === "connected") this.post({ type: "gone" });
  }

  private sendTitle(): void {
    const child = this.source.child(this.taskID);
    if (child) this.surface.setTitle(child.description);
  }

  /** What this session waits for, or anything below it. */
  private requests(): readonly OpenRequest[] {
    return this.source
      .requests()
      .filter(({ child }) => isWithin(child, this.taskID, (id) => this.source.child(id)));
  }

  private sendRequests(): void {
    // Without a connection nothing is known of them, and what was typed into them must stay.
    if (this.source.connectionKind(this.taskID) !== "connected") return;
    const open = this.requests();
    const requests = open.map((one) =>
      toRequestView(one, this.taskID, this.language.requests, this.toolInputs.get(one.request.id)),
    );
    this.post({ type: "requests", requests });
    for (const id of this.toolInputs.keys())
      if (!requests.some((request) => request.id === id)) this.toolInputs.delete(id);
    if (this.listening)
      for (const { request } of open) if (!this.toolInputs.has(request.id)) void this.readToolInput(request);
  }

  /** Most agents say why they want something only in the call that asks, which no request waits for. */
  private async readToolInput(request: PendingRequest): Promise<void> {
    this.toolInputs.set(request.id, undefined);
    const input = await this.source.toolInput(request).catch(() => undefined);
    if (!input || this.disposed || !this.toolInputs.has(request.id)) return;
    this.toolInputs.set(request.id, input);
    this.sendRequests();
  }

  private sendConnection(): void {
    this.post({ type: "connection", connection: this.source.connectionKind(this.taskID) });
  }

  private async resume(prompt: string): Promise<void> {
    try {
      await this.actions.resume(this.taskID, prompt);
      this.post({ type: "resume-done" });
    } catch (error) {
      this.log.error(`${this.taskID} was not resumed.`, error);
      this.refused = { prompt, error: this.language.describe(error) };
      this.giveBack();
    }
  }

  /** The page kept nothing of what it sent. */
  private giveBack(): void {
    const { refused } = this;
    if (!refused || !this.listening) return;
    this.refused = undefined;
    this.post({ type: "resume-done", refused });
  }

  private async retry(): Promise<void> {
    if (this.isRetrying) return;
    this.isRetrying = true;
    const isLaunched = await this.actions.retry(this.taskID);
    this.isRetrying = false;
    this.sendRetrying();
    if (isLaunched) this.note(sentence("Launched a new task with the same prompt."));
  }

  private sendRetrying(): void {
    this.post({ type: "retrying", retrying: this.isRetrying });
  }

  private async copyResult(): Promise<void> {
    const child = this.source.child(this.taskID);
    const answer = child && isTask(child) ? await this.actions.result(child.id) : lastAnswer(this.messages);
    if (answer) this.actions.copyText(answer);
    else this.note(sentence("There is no answer to copy."));
  }

  private async reply(id: string, reply: RequestAnswer): Promise<void> {
    const open = this.findRequest(id);
    try {
      if (open) await this.actions.reply(open.request, reply);
      else this.noteAnswered();
    } catch (error) {
      if (!this.findRequest(id) || (error instanceof ServerFailure && error.reason === "not-found"))
        this.noteAnswered();
      else {
        this.log.error(`The request ${id} was not answered.`, error);
        this.post({ type: "reply-failed", id, error: this.language.describe(error) });
      }
    }
  }

  private findRequest(id: string): OpenRequest | undefined {
    return this.requests().find(({ request }) => request.id === id);
  }

  private noteAnswered(): void {
    this.sendRequests();
    this.note(sentence("That request is no longer waiting."));
  }

  private openDiff(id: string): void {
    const tool = findTool(this.messages, id);
    const request = this.findRequest(id)?.request;
    const diff = tool ? toolDiff(tool) : request && proposedDiff(request);
    if (diff !== undefined) this.surface.openDocument(`${tool?.tool ?? "changes"}.diff`, visible(diff));
  }

  private orNote(action: Promise<void>): void {
    action.catch((error: unknown) => this.note(this.language.describe(error)));
  }

  private note(text: Text): void {
    this.post({ type: "note", text: this.language.translate(text) });
  }

  private post(message: HostMessage): void {
    if (this.listening) this.surface.post(message);
  }
}
