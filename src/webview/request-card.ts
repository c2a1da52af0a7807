import type { PermissionView, QuestionsView, ReplyView, RequestView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { diffView } from "./diff-view.ts";
import { h } from "./dom.ts";
import { fill } from "./format.ts";
import { icon } from "./icons.ts";
import type { ReplyDraft } from "./page-state.ts";
import { QuestionForm } from "./question-form.ts";

/** One thing that an agent waits for, with the ways to answer it. Nothing is chosen before the person chooses it. */
export class RequestCard {
  readonly element: HTMLElement;
  private readonly problem = h("p", { class: "request-problem", role: "alert" });
  private readonly reason = h("p", { class: "request-reason", dir: "auto" });
  private readonly buttons = new Set<HTMLButtonElement>();
  private readonly form: QuestionForm | undefined;
  private isSending = false;

  /** `onDidEdit` hears of what was typed or chosen, so that it can be kept. */
  constructor(
    private readonly context: Context,
    private readonly request: RequestView,
    draft: ReplyDraft | undefined,
    private readonly onDidEdit: (draft: ReplyDraft) => void,
  ) {
    const titleID = `request-${request.id}`;
    this.element = h(
      "article",
      { class: "request", tabindex: "-1", "aria-labelledby": titleID },
      h(
        "h2",
        { class: "request-title", id: titleID },
        icon(request.kind === "permission" ? "shield" : "question"),
        h("span", {}, requestTitle(request, context)),
        this.place(),
      ),
    );
    if (request.kind === "permission") {
      this.element.append(...this.permission(request), this.permissionButtons(request, draft));
      this.update(request);
    } else {
      this.form = new QuestionForm(context, request, draft, (edited) => {
        this.refresh();
        onDidEdit(edited);
      });
      this.element.append(this.form.element, this.questionButtons(request, this.form));
    }
    this.element.append(this.problem);
    this.refresh();
  }

  /** Takes in the reason, which may become known only after the request. */
  update(request: RequestView): void {
    if (request.kind !== "permission" || request.reason === undefined || this.reason.hasChildNodes()) return;
    this.reason.append(h("span", {}, this.context.strings.requests.reason), request.reason);
  }

  /** The reply was not taken. */
  fail(error: string): void {
    this.isSending = false;
    this.problem.textContent = fill(this.context.strings.requests.failed, error);
    this.refresh();
  }

  /** Where the question comes from, if not from what the panel shows. */
  private place(): HTMLElement | undefined {
    const { description } = this.request.asker;
    if (description === undefined) return undefined;
    const text = fill(this.context.strings.requests.below, description);
    return h("span", { class: "request-place", dir: "auto" }, text);
  }

  private *permission({ id, subjects, diff }: PermissionView): Generator<HTMLElement | Node> {
    const { strings } = this.context;
    yield this.reason;
    if (subjects.length > 0)
      yield h(
        "div",
        { class: "request-subjects", tabindex: "0", role: "group", "aria-label": strings.input },
        ...subjects.map((text) => h("pre", { dir: "ltr" }, text)),
      );
    if (diff) yield* diffView(id, diff, this.context);
  }

  private permissionButtons({ always }: PermissionView, draft: ReplyDraft | undefined): HTMLElement {
    const { requests: strings } = this.context.strings;
    const answer = (reply: "once" | "always" | "reject") => () => this.send({ type: "permission", reply });
    const bar = h("div", { class: "request-bar" }, this.button(strings.allowOnce, "primary", answer("once")));
    const covers = h("p", { class: "request-note" });
    if (always.length > 0) {
      bar.append(this.button(strings.allowAlways, "secondary", answer("always"), covers));
      covers.textContent = always.includes("*")
        ? strings.alwaysCoversAll
        : fill(strings.alwaysCovers, always.join(", "));
    }
    const reject = this.button(strings.reject, "secondary", answer("reject"));
    reject.title = strings.rejectHint;
    const explain = this.button(strings.rejectWithMessage, "secondary", () => show(true));
    bar.append(reject, explain);

    const text = h("textarea", {
      rows: "2",
      dir: "auto",
      "aria-label": strings.messageLabel,
      placeholder: strings.messagePlaceholder,
    });
    text.value = draft?.message ?? "";
    text.addEventListener("input", () => this.onDidEdit({ message: text.value }));
    const message = h(
      "div",
      { class: "request-message" },
      text,
      h(
        "div",
        { class: "request-bar" },
        this.button(strings.sendReject, "primary", () => {
          const message = text.value.trim();
          this.send({ type: "permission", reply: "reject", ...(message === "" ? {} : { message }) });
        }),
        this.button(strings.back, "secondary", () => show(false)),
      ),
    );
    const show = (isWriting: boolean): void => {
      const held = this.element.contains(document.activeElement);
      message.hidden = !isWriting;
      bar.hidden = isWriting;
      covers.hidden = isWriting;
      if (held) (isWriting ? text : explain).focus();
    };
    show(text.value !== "");
    return h("div", { class: "request-reply" }, bar, covers, message);
  }

  private questionButtons({ questions }: QuestionsView, form: QuestionForm): HTMLElement {
    const { requests: strings } = this.context.strings;
    const dismiss = this.button(strings.dismiss, "secondary", () => this.send({ type: "dismiss" }));
    dismiss.title = strings.dismissHint;
    const hint = h("p", { class: "request-note submit-hint" }, questions.length > 1 && strings.submitHint);
    const submit = this.button(strings.submit, "primary", () => {
      const answers = form.answers();
      if (answers) this.send({ type: "question", answers });
    });
    submit.dataset["needs"] = "answers";
    return h("div", { class: "request-reply" }, h("div", { class: "request-bar" }, submit, dismiss), hint);
  }

  private button(
    label: string,
    kind: "primary" | "secondary",
    run: () => void,
    description?: HTMLElement,
  ): HTMLButtonElement {
    const button = h("button", { type: "button", class: kind }, label);
    if (description) {
      description.id = `covers-${this.request.id}`;
      button.setAttribute("aria-describedby", description.id);
    }
    button.addEventListener("click", run);
    this.buttons.add(button);
    return button;
  }

  private send(reply: ReplyView): void {
    if (this.isSending) return;
    this.isSending = true;
    this.problem.textContent = "";
    this.refresh();
    this.context.post({ type: "reply", id: this.request.id, reply });
  }

  private refresh(): void {
    for (const button of this.buttons) {
      // Really disabled, a button would lose the focus while its answer is on the way.
      button.setAttribute("aria-disabled", String(this.isSending));
      button.disabled = button.dataset["needs"] === "answers" && this.form?.answers() === undefined;
    }
  }
}

/** What is asked, in one sentence. */
export function requestTitle(request: RequestView, { strings }: Context): string {
  const { requests } = strings;
  const agent = request.asker.agent ?? requests.someAgent;
  if (request.kind === "question") {
    const { length } = request.questions;
    return length === 1
      ? fill(requests.hasQuestion, agent)
      : fill(requests.hasQuestions, agent, String(length));
  }
  const { permission } = request;
  const known = Object.hasOwn(requests.asks, permission) ? requests.asks[permission] : undefined;
  return fill(known ?? requests.asksOther, agent, permission);
}
