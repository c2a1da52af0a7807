import { isSafeLink } from "../protocol/output-guard.ts";
import type { ConnectionView, Handlers, HostMessage, TaskView } from "../protocol/output.ts";
import { Announcer } from "./announcer.ts";
import { Banner, Toast } from "./banner.ts";
import type { Context, Disclosures } from "./context.ts";
import { Conversation, type ConversationObserver, type Row } from "./conversation.ts";
import { button, h, isTextField, type TextField } from "./dom.ts";
import { Finder } from "./finder.ts";
import { Footer } from "./footer.ts";
import { Header } from "./header.ts";
import { icon } from "./icons.ts";
import { MessageBox } from "./message-box.ts";
import { stateOf, type PageState, type PageStateStore } from "./page-state.ts";
import { ReadingKeys } from "./reading-keys.ts";
import { requestTitle } from "./request-card.ts";
import { RequestCards } from "./request-cards.ts";
import { isMac } from "./platform.ts";
import { RowView } from "./row-view.ts";
import { ToolView } from "./tool-view.ts";
import { VirtualList } from "./virtual-list.ts";

const COPIED_MS = 1_500;

/** The output panel: one task, its conversation and its actions. */
export class Page {
  /** Handles each message of the extension. */
  readonly handlers: Handlers<Exclude<HostMessage, { type: "setup" }>> = {
    connection: ({ connection }) => this.keepFocus(() => this.showConnection(connection)),
    task: ({ task }) => this.keepFocus(() => this.showTask(task)),
    gone: () => this.keepFocus(() => this.showGone()),
    conversation: ({ entries, earlier, before }) => {
      // The page may have asked for this before it got the newest entries again.
      if (before !== undefined && before !== this.conversation.oldest?.id) return;
      if (before === undefined) {
        if (!this.conversation.isEmpty) this.pendingReading ??= this.state.current.reading;
        this.conversation.reset(entries, earlier);
      } else this.conversation.prepend(entries, earlier);
      this.didLoad();
    },
    changes: ({ changes }) => {
      for (const change of changes) this.conversation.apply(change);
      this.showPlaceholder();
    },
    "load-failed": ({ message }) => this.showLoadFailure(message),
    "tool-detail": ({ detail }) => {
      this.tools.receive(detail);
      const row = this.conversation.firstRow(detail.id);
      if (row) this.list.onChange(row);
    },
    "send-done": ({ returned }) => this.box.done(returned),
    withdrawn: ({ returned }) => this.box.takeBack(returned),
    retrying: ({ retrying }) => this.footer.showRetrying(retrying),
    requests: ({ requests }) => {
      const titles = this.requests.show(requests).map((request) => {
        const title = requestTitle(request, this.context);
        return request.asker === undefined ? title : this.context.l10n.t("{0}: {1}", title, request.asker);
      });
      if (titles.length > 0) this.announcer.say(titles.join("\n"));
      this.announceState();
    },
    "reply-failed": ({ id, error }) => this.requests.fail(id, error),
    image: ({ path, ...image }) =>
      void this.context.images.receive(path, image).then(() => {
        for (const [row, element] of this.list.shown)
          if (element.querySelector(`.path.image[title="${CSS.escape(path)}"]`)) this.list.onChange(row);
      }),
    note: ({ text }) => this.note(text),
    find: ({ at }) => {
      // The match is read instead.
      if (at) this.pendingReading = undefined;
      this.finder.open(at);
    },
    left: ({ state }) => {
      const { draft, replies } = stateOf(this.state.current.taskID, state);
      if (draft !== "" || Object.keys(replies).length > 0) this.context.post({ type: "keep" });
      this.box.takeBack({ text: draft });
      this.requests.takeOver(replies);
      this.state.write();
    },
    "found-in-tools": ({ query, counts }) => this.finder.receive(query, counts),
  };

  private readonly conversation: Conversation;
  private readonly list: VirtualList;
  private readonly finder: Finder;
  private readonly tools: ToolView;
  private readonly header: Header;
  private readonly footer: Footer;
  private readonly box: MessageBox;
  private readonly banner: Banner;
  private readonly requests: RequestCards;
  private readonly toast = new Toast();
  private readonly placeholder = h("div", { class: "placeholder" });
  private readonly earlier: HTMLElement;
  private readonly announcer: Announcer;
  private readonly scroller: HTMLElement;
  private readonly opened: Set<string>;
  private task: TaskView | undefined;
  private connection: ConnectionView = "connected";
  private loading: "in-progress" | "failed" | "done" = "in-progress";
  private isGone = false;
  /** The text field that has the focus, or had it last. */
  private typing: TextField | undefined;
  /** The reading position to restore once its row is received. */
  private pendingReading: PageState["reading"];

  constructor(
    private readonly context: Context,
    private readonly state: PageStateStore,
    root: HTMLElement,
  ) {
    const { l10n } = context;
    this.opened = new Set(state.current.opened);
    this.pendingReading = state.current.reading;
    this.announcer = new Announcer(l10n);
    this.tools = new ToolView(context);
    this.header = new Header(context);
    this.banner = new Banner(context);
    this.box = new MessageBox(context, state.current.draft, (draft) => {
      state.update({ draft });
      // A sent draft must not come back, however soon the editor discards the page.
      if (draft === "") state.write();
    });
    // Whoever leaves the box may leave the page next.
    this.box.element.addEventListener("focusout", () => state.write());
    this.footer = new Footer(context, this.box);
    this.requests = new RequestCards(context, state, () => this.scroller.focus({ preventScroll: true }));
    this.scroller = h("main", { class: "scroller", tabindex: "0", "aria-label": l10n.t("Conversation") });
    this.earlier = h("p", { class: "earlier", hidden: true }, l10n.t("Loading earlier messages…"));

    const disclosures: Disclosures = {
      isOpen: (id) => this.opened.has(id),
      toggle: (row) => this.toggle(row),
    };
    const follow = (): void => {
      this.list.follow();
      this.scroller.focus({ preventScroll: true });
    };
    const jump = button("jump", follow, icon("down"), l10n.t("Jump to Latest"));
    jump.hidden = true;
    const observer: ConversationObserver = {
      onSplice: (index, removed, inserted) => {
        this.list.onSplice(index, removed, inserted);
        this.finder.didChange();
      },
      onChange: (row) => {
        this.list.onChange(row);
        this.finder.didChange();
      },
    };
    this.conversation = new Conversation(observer);
    const rowView = new RowView(context, disclosures, this.tools, (text) => void this.copy(text));
    this.list = new VirtualList(this.scroller, this.conversation.rows, rowView, () => {
      jump.hidden = this.list.following;
      this.keepReadingPosition();
      this.finder.didLayout();
    });
    const { conversation, list, scroller } = this;
    this.finder = new Finder(context, {
      conversation,
      list,
      scroller,
      disclosures,
      announce: (text) => this.announcer.say(text),
    });
    new ReadingKeys(scroller, follow);

    this.scroller.append(h("div", { class: "column" }, this.earlier, this.list.element, this.placeholder));
    this.scroller.addEventListener("click", (event) => this.onClick(event));
    // Whoever reads on isn't led back.
    for (const type of ["wheel", "pointerdown", "keydown"])
      this.scroller.addEventListener(type, () => (this.pendingReading = undefined), { passive: true });
    const stage = h(
      "div",
      { class: "stage" },
      this.finder.box.element,
      this.scroller,
      jump,
      this.toast.element,
    );
    root.replaceChildren(
      this.header.element,
      this.banner.element,
      stage,
      this.requests.element,
      this.footer.element,
      this.announcer.element,
    );
    this.showPlaceholder();
    window.setInterval(() => this.tick(), 1_000);
    document.addEventListener("keydown", (event) => this.onKeyDown(event));
    document.addEventListener("copy", (event) => this.onCopy(event));
    document.addEventListener(
      "focusin",
      ({ target }) => (this.typing = isTextField(target) ? target : undefined),
    );
    window.addEventListener("focus", () => this.takeFocus());
    this.takeFocus();
  }

  /**
   * Gives the focus to the conversation when the panel is opened, so that keys scroll it. When the user returns to the
   * panel, whose focus the editor has removed, it goes to where the user was typing.
   */
  private takeFocus(): void {
    if (!document.hasFocus() || (document.activeElement ?? document.body) !== document.body) return;
    const { scroller, typing } = this;
    if (typing?.checkVisibility() && typing.value !== "") {
      typing.focus();
      return;
    }
    scroller.dataset["opened"] = "";
    scroller.addEventListener("blur", () => delete scroller.dataset["opened"], { once: true });
    scroller.focus({ preventScroll: true });
  }

  /** Moves the focus to the conversation if what has it goes away, such as a button that was pressed. */
  private keepFocus(show: () => void): void {
    const { activeElement: before } = document;
    show();
    const { activeElement: after } = document;
    if (before !== document.body && (after === document.body || after?.closest("[hidden]")))
      this.scroller.focus({ preventScroll: true });
  }

  private onKeyDown(event: KeyboardEvent): void {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (key === "F3" && this.finder.isOpen) this.finder.step(shiftKey ? -1 : 1);
    else if (key.toLowerCase() === "f" && (isMac ? metaKey : ctrlKey) && !altKey && !shiftKey)
      this.finder.open();
    else return;
    event.preventDefault();
  }

  /** A selection of everything has only the rows that are in the page, so the extension copies the whole. */
  private onCopy(event: ClipboardEvent): void {
    if (isTextField(event.target) || !document.getSelection()?.containsNode(this.list.element)) return;
    event.preventDefault();
    this.context.post({ type: "copy-conversation" });
  }

  private showTask(task: TaskView): void {
    this.task = task;
    this.isGone = false;
    this.banner.showGone(false);
    this.header.show(task);
    this.footer.show(task);
    this.showPlaceholder();
    this.announceState();
  }

  private showGone(): void {
    this.isGone = true;
    this.task = undefined;
    this.header.retire();
    this.footer.showGone();
    this.requests.show([]);
    this.banner.showGone(true);
    this.showPlaceholder();
    this.announcer.say(this.context.l10n.t("This task is no longer available."));
  }

  private showConnection(connection: ConnectionView): void {
    this.connection = connection;
    if (this.loading === "failed") this.loading = "in-progress";
    this.banner.showConnection(connection);
    this.showPlaceholder();
    if (connection === "disconnected")
      this.announcer.say(
        this.context.l10n.t("Not connected to OpenCode. The conversation may be out of date."),
      );
  }

  private didLoad(): void {
    this.loading = "done";
    this.earlier.hidden = !this.conversation.hasEarlier;
    this.showPlaceholder();
    this.restoreReadingPosition();
    const { oldest, hasEarlier } = this.conversation;
    if (hasEarlier && oldest)
      requestIdleCallback(() => this.context.post({ type: "earlier", before: oldest.id }));
  }

  /** Shows a text in place of an empty conversation. */
  private showPlaceholder(): void {
    const { l10n } = this.context;
    this.placeholder.hidden = !this.conversation.isEmpty || this.isGone;
    if (this.loading === "failed") return;
    if (this.loading === "done")
      this.placeholder.textContent = this.task?.activity
        ? l10n.t("The conversation appears here once the task starts.")
        : l10n.t("No messages in this task.");
    else
      this.placeholder.textContent =
        this.connection === "connected"
          ? l10n.t("Loading the conversation…")
          : l10n.t("The conversation appears here once OpenCode is connected.");
  }

  private showLoadFailure(message: string): void {
    const { l10n, post } = this.context;
    this.loading = "failed";
    this.placeholder.hidden = false;
    this.placeholder.replaceChildren(
      h(
        "div",
        { class: "problem", role: "alert" },
        icon("error"),
        h(
          "div",
          { class: "problem-text" },
          h("strong", {}, l10n.t("Couldn't load the conversation")),
          h("p", {}, message),
        ),
      ),
      button("primary", () => post({ type: "ready" }), l10n.t("Try Again")),
    );
  }

  private toggle(row: Row): void {
    const { id } = row.item.entry;
    if (!this.opened.delete(id)) this.opened.add(id);
    this.state.update({ opened: [...this.opened] });
    this.list.hold();
    this.list.onChange(row);
  }

  private onClick(event: MouseEvent): void {
    if (!(event.target instanceof Element)) return;
    // What the reader opens may hide the page, and with it the reading position.
    this.state.write();
    const link = event.target.closest("a[href]");
    if (link) {
      // The editor would open the link as well.
      event.preventDefault();
      event.stopPropagation();
      const url = link.getAttribute("href") ?? "";
      if (isSafeLink(url)) this.context.post({ type: "open-link", url });
      return;
    }
    const path = event.target.closest("button.path");
    if (path) this.context.post({ type: "open-path", path: path.getAttribute("title") ?? path.textContent });
    const copy = event.target.closest("button.code-copy");
    if (copy) void this.copyCode(copy);
  }

  private async copyCode(button: Element): Promise<void> {
    const { l10n } = this.context;
    await this.copy(button.closest(".code")?.querySelector("code")?.textContent ?? "");
    button.textContent = l10n.t("Copied");
    window.setTimeout(() => (button.textContent = l10n.t("Copy")), COPIED_MS);
  }

  private async copy(text: string): Promise<void> {
    await navigator.clipboard.writeText(text);
    this.note(this.context.l10n.t("Copied"));
  }

  private tick(): void {
    if (!this.task?.activity) return;
    const { format, now } = this.context;
    this.header.tick();
    this.footer.tick();
    for (const clock of this.scroller.querySelectorAll<HTMLElement>("[data-since]"))
      clock.textContent = format.duration(now() - Number(clock.dataset["since"]));
  }

  private keepReadingPosition(): void {
    if (this.pendingReading) return;
    const position = this.list.position();
    const reading = position && {
      entryID: position.row.item.entry.id,
      segment: position.row.item.rows.indexOf(position.row),
      top: position.top,
    };
    this.state.update({ reading });
  }

  private restoreReadingPosition(): void {
    const reading = this.pendingReading;
    if (!reading) return;
    const row = this.conversation.firstRow(reading.entryID)?.item.rows[reading.segment];
    if (row) this.list.restore({ row, top: reading.top });
    if (row || !this.conversation.hasEarlier) this.pendingReading = undefined;
  }

  private announceState(): void {
    // A request says more, and must not be spoken over.
    if (this.task && this.requests.element.hidden) this.announcer.sayState(this.task);
  }

  private note(text: string): void {
    this.toast.show(text);
    this.announcer.repeat(text);
  }
}
