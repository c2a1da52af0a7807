import { DisposableStore } from "../../engine/disposable-store.ts";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import { ServerFailure } from "../../engine/ports.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import { sentence, type Text } from "../../engine/sentence.ts";
import type { RequestAnswer } from "../../engine/server-model.ts";
import { isRunning, isTask, type Child } from "../../engine/subagent.ts";
import { shortID, type Task } from "../../engine/task.ts";
import { isSafeLink, parsePanelMessage } from "../../protocol/output-guard.ts";
import {
  dispatch,
  type ConversationLink,
  type ConversationMessage,
  type FoundAt,
  type Handlers,
  type HostMessage,
  type PanelMessage,
} from "../../protocol/output.ts";
import type { Conversation } from "../../rpc/contract.ts";
import { pathAndPosition } from "./file-reference.ts";
import { Outbox } from "./outbox.ts";
import type { OutputEditor, OutputParts } from "./output-parts.ts";
import { isWithin, toRequestView, toTaskView } from "./view-model.ts";

const NOT_READ = sentence("The conversation can't be read now.");

/** Shows one task in one panel: sends its state and changes to the page, and does what the page requests. */
export class OutputSession {
  private readonly disposables: DisposableStore;
  private conversation: Conversation | undefined;
  private loading: Promise<void> | undefined;
  /** The requests with what their tool calls say of them, by ID; undefined while unknown. */
  private readonly explained = new Map<string, MirroredRequest | undefined>();
  private isRetrying = false;
  private readonly outbox: Outbox;
  /** Whether the page is loaded and listening. */
  private listening = false;
  /** Whether the page has the newest entries; what the conversation tells before was meant for an earlier page. */
  private hasNewest = false;
  private disposed = false;

  private readonly handlers: Handlers<PanelMessage> = {
    ready: () => this.begin(),
    earlier: (question) => this.conversation?.ask(question),
    "tool-detail": (question) => {
      if (this.conversation) this.conversation.ask(question);
      else this.note(NOT_READ);
    },
    "find-in-tools": (question) => {
      if (this.conversation) this.conversation.ask(question);
      // The page has the rest of the conversation.
      else this.post({ type: "found-in-tools", query: question.query, counts: {} });
    },
    "open-field": (link) => this.orNote(this.open(link)),
    "open-diff": (link) => this.orNote(this.openDiff(link)),
    "open-session": (link) => this.orNote(this.open(link)),
    "open-transcript": (link) => this.orNote(this.open(link)),
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
    "copy-conversation": () => this.orNote(this.copyConversation()),
    "copy-result": () => this.orNote(this.copyResult()),
    send: ({ text, how }) => void this.outbox.send(text, how),
    withdraw: () => {
      // The text returns to the box, which then has something that the user wrote.
      this.editor.keep();
      void this.outbox.withdraw();
    },
    "open-task": ({ id }) => {
      if (this.parts.known.child(id)) this.editor.openSession(id);
      else this.note(sentence("Task {0} was cleared or deleted.", shortID(id)));
    },
    keep: () => this.editor.keep(),
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
    this.disposables = new DisposableStore(
      known.onDidChange(({ id, before, after }) => {
        if (id === taskID || (after ?? before)?.insteadOf === taskID) this.sendTask();
      }),
      known.onDidChangeSubagent(({ id }) => {
        if (id === taskID) this.sendTask();
      }),
      known.onDidChangeRequests(() => this.sendRequests()),
      editor.onDidChangeConnection(() => {
        // Its folder may have been removed; if it is added again, the conversation is opened there.
        if (!this.child) this.unfollow();
        this.sendConnection();
        this.sendTask();
        this.sendRequests();
        void this.loadAgain();
      }),
    );
    this.sendTitle();
  }

  /** Shows the page's box for finding text, at a match if there is one, as soon as the page is listening. */
  find(at?: FoundAt): void {
    this.outbox.give({ type: "find", at });
  }

  /** Gives the page what the user wrote in another page of the task, whose state this is. */
  takeOver(state: unknown): void {
    this.outbox.give({ type: "left", state });
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
  }

  dispose(): void {
    this.disposed = true;
    this.pause();
    this.outbox.dispose();
    this.disposables.dispose();
    this.unfollow();
  }

  private unfollow(): void {
    this.conversation?.dispose();
    this.conversation = undefined;
  }

  private get child(): Child | undefined {
    return this.parts.known.child(this.taskID);
  }

  private get title(): string {
    return this.child?.description ?? this.taskID;
  }

  private begin(): void {
    this.listening = true;
    this.hasNewest = false;
    this.post({ type: "setup", translations: this.editor.translations, now: Date.now() });
    this.sendConnection();
    this.sendTask();
    this.sendRequests();
    if (this.isRetrying) this.sendRetrying();
    this.outbox.deliver();
    if (this.conversation) this.conversation.ask({ type: "newest" });
    else void this.load();
  }

  /** A load that is in progress may fail because the connection was lost. */
  private async loadAgain(): Promise<void> {
    await this.loading;
    if (!this.conversation) await this.load();
  }

  /** Loads the conversation and follows it, unless that is in progress. */
  private load(): Promise<void> {
    this.loading ??= this.follow().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async follow(): Promise<void> {
    if (!this.child || this.editor.connection() !== "connected") return;
    try {
      const conversation = await this.parts.known.openConversation(this.taskID, (message) =>
        this.show(message),
      );
      if (this.disposed) {
        conversation.dispose();
        return;
      }
      this.conversation = conversation;
      conversation.ask({ type: "newest" });
    } catch (error) {
      if (this.disposed || !this.child) return;
      if (error instanceof ServerFailure && error.reason === "not-found") {
        this.post({ type: "gone" });
        return;
      }
      this.parts.logger.error(`Couldn't load the conversation of ${this.taskID}.`, error);
      this.post({ type: "load-failed", message: this.editor.describe(error) });
    }
  }

  private show(message: ConversationMessage): void {
    this.hasNewest ||= message.type === "conversation" && message.before === undefined;
    if (this.hasNewest) this.post(message);
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
    const { child } = this;
    if (child) this.editor.showInTab(child);
  }

  /** The requests of this session and its descendants. */
  private requests(): readonly OpenRequest<MirroredRequest>[] {
    const { known } = this.parts;
    return known.openRequests().filter(({ child }) => isWithin(known, child, this.taskID));
  }

  private sendRequests(): void {
    // Without a connection the requests are unknown, and text typed into them must be kept.
    if (this.editor.connection() !== "connected") return;
    const open = this.requests();
    const requests = open.map(({ request, child }) =>
      toRequestView({ request: this.explained.get(request.id) ?? request, child }, this.taskID, this.editor),
    );
    this.post({ type: "requests", requests });
    for (const id of this.explained.keys())
      if (!requests.some((request) => request.id === id)) this.explained.delete(id);
    if (this.listening)
      for (const { request } of open) if (!this.explained.has(request.id)) void this.explain(request);
  }

  /** The request is shown without waiting for this. */
  private async explain(request: MirroredRequest): Promise<void> {
    this.explained.set(request.id, undefined);
    const explained = await this.parts.known.explainRequest(request).catch(() => undefined);
    // It is asked again when the requests are shown next.
    if (!explained) return void this.explained.delete(request.id);
    if (this.disposed || !this.explained.has(request.id)) return;
    this.explained.set(request.id, explained);
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
      child && isTask(child)
        ? (await this.parts.tasks.output(child.id)).result
        : await this.parts.known.lastAnswer(this.taskID);
    if (answer) this.editor.copyText(answer);
    this.note(answer ? sentence("Copied the result") : sentence("There is no result to copy."));
  }

  private async reply(id: string, reply: RequestAnswer): Promise<void> {
    const open = this.findRequest(id);
    try {
      if (open) await this.parts.tasks.answer(open, reply);
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

  private findRequest(id: string): MirroredRequest | undefined {
    return this.requests().find(({ request }) => request.id === id)?.request;
  }

  private noteAnswered(): void {
    this.sendRequests();
    this.note(sentence("This request is no longer waiting."));
  }

  private async open(link: ConversationLink): Promise<void> {
    if (!this.conversation) return this.note(NOT_READ);
    const target = await this.conversation.open(link);
    if (!target) return;
    switch (target.type) {
      case "document":
        return this.editor.openDocument(target.name, target.text);
      case "file":
        return this.editor.openFile(target.path);
      case "session":
        return this.editor.openSession(target.id);
    }
  }

  private async openDiff(link: ConversationLink & { readonly type: "open-diff" }): Promise<void> {
    const request = this.findRequest(link.id);
    if (request?.type !== "permission" || request.diff === undefined) await this.open(link);
    else this.editor.openDocument("changes.diff", request.diff);
  }

  private async copyConversation(): Promise<void> {
    if (!this.conversation) return this.note(NOT_READ);
    const target = await this.conversation.open({ type: "open-transcript" });
    if (target?.type !== "document") return;
    this.editor.copyText(target.text);
    this.note(sentence("Copied the whole conversation, including tool calls."));
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
