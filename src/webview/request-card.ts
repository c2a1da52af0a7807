import {
  MAX_ANSWER,
  type PermissionView,
  type QuestionsView,
  type RequestAnswer,
  type RequestView,
} from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { diffView } from "./diff-view.ts";
import { button, h } from "./dom.ts";
import { icon } from "./icons.ts";
import type { ReplyDraft } from "./page-state.ts";
import { QuestionForm } from "./question-form.ts";
import { whyTooLong } from "./text-limit.ts";

/** One request and the ways to answer it. Nothing is preselected. */
export class RequestCard {
  readonly element: HTMLElement;
  private readonly problem = h("p", { class: "request-problem", role: "alert" });
  private readonly title = h("span", {});
  private readonly reason = h("p", { class: "request-reason", dir: "auto" });
  private readonly subjects: HTMLElement;
  private readonly buttons = new Set<HTMLButtonElement>();
  private readonly form: QuestionForm | undefined;
  private isSending = false;

  /** `onDidEdit` is called with the user's input, so that it can be kept. */
  constructor(
    private readonly context: Context,
    public request: RequestView,
    draft: ReplyDraft | undefined,
    private readonly onDidEdit: (draft: ReplyDraft) => void,
  ) {
    const titleID = `request-${request.id}`;
    this.subjects = h("div", {
      class: "request-subjects",
      tabindex: "0",
      role: "group",
      "aria-label": context.l10n.t("Input"),
    });
    this.element = h(
      "article",
      { class: "request", tabindex: "-1", "aria-labelledby": titleID },
      h(
        "h2",
        { class: "request-title", id: titleID },
        icon(request.kind === "permission" ? "shield" : "question"),
        this.title,
        request.asker === undefined
          ? undefined
          : h("span", { class: "request-place", dir: "auto" }, request.asker),
      ),
    );
    if (request.kind === "permission") {
      this.element.append(...this.permission(request), this.permissionButtons(request, draft));
    } else {
      this.form = new QuestionForm(context, request, draft, (edited) => {
        this.refresh();
        onDidEdit(edited);
      });
      this.element.append(this.form.element, this.questionButtons(request, this.form));
    }
    this.element.append(this.problem);
    this.update(request);
    this.refresh();
  }

  /** Shows what may become known after the request, such as the whole command; returns whether there is more to read. */
  update(request: RequestView): boolean {
    this.request = request;
    this.title.textContent = requestTitle(request, this.context);
    if (request.kind !== "permission") return false;
    const { subjects, reason } = request;
    const shown = [...this.subjects.children].map(({ textContent }) => textContent);
    const isOther = shown.length !== subjects.length || subjects.some((text, index) => text !== shown[index]);
    if (isOther) this.subjects.replaceChildren(...subjects.map((text) => h("pre", { dir: "ltr" }, text)));
    this.subjects.hidden = subjects.length === 0;
    const isReasonNew = reason !== undefined && !this.reason.hasChildNodes();
    if (isReasonNew) this.reason.append(h("span", {}, this.context.l10n.t("Reason: ")), reason);
    return isOther || isReasonNew;
  }

  /** Shows that the reply couldn't be sent. */
  fail(error: string): void {
    this.isSending = false;
    this.problem.textContent = this.context.l10n.t("Couldn't send the answer: {0}", error);
    this.refresh();
  }

  private *permission({ id, diff }: PermissionView): Generator<Node> {
    yield this.reason;
    yield this.subjects;
    if (diff) yield* diffView(id, diff, this.context);
  }

  private permissionButtons({ always }: PermissionView, draft: ReplyDraft | undefined): HTMLElement {
    const { l10n } = this.context;
    const answer = (reply: "once" | "always" | "reject") => () => this.send({ type: "permission", reply });
    const bar = h(
      "div",
      { class: "request-bar" },
      this.button(l10n.t("Allow Once"), "primary", answer("once")),
    );
    const covers = h("p", { class: "request-note" });
    if (always !== undefined) {
      bar.append(this.button(l10n.t("Always Allow"), "secondary", answer("always"), covers));
      covers.textContent = l10n.t("{0}: {1}", l10n.t("Always Allow"), always);
    }
    const reject = this.button(l10n.t("Reject"), "secondary", answer("reject"));
    reject.title = l10n.t("The agent stops");
    const explain = this.button(l10n.t("Reject with Message…"), "secondary", () => show(true));
    bar.append(reject, explain);

    const text = h("textarea", {
      rows: "2",
      dir: "auto",
      "aria-label": l10n.t("Enter what the agent should do instead"),
      placeholder: l10n.t("The agent reads this and tries another way"),
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
        this.button(l10n.t("Reject and Send"), "primary", () => {
          const message = text.value.trim();
          this.send({ type: "permission", reply: "reject", ...(message === "" ? {} : { message }) });
        }),
        this.button(l10n.t("Back"), "secondary", () => show(false)),
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
    const { l10n } = this.context;
    const dismiss = this.button(l10n.t("Dismiss"), "secondary", () => this.send({ type: "dismiss" }));
    dismiss.title = l10n.t("The agent gets no answer and stops");
    const hint = h(
      "p",
      { class: "request-note submit-hint" },
      questions.length > 1 && l10n.t("Answer all questions first"),
    );
    const submit = this.button(l10n.t("Submit"), "primary", () => {
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
    const element = button(kind, run, label);
    if (description) {
      description.id = `covers-${this.request.id}`;
      element.setAttribute("aria-describedby", description.id);
    }
    this.buttons.add(element);
    return element;
  }

  private send(reply: RequestAnswer): void {
    if (this.isSending) return;
    const problem = whyTooLong(textsOf(reply), MAX_ANSWER, this.context);
    if (problem !== undefined) {
      this.fail(problem);
      return;
    }
    this.isSending = true;
    this.problem.textContent = "";
    this.refresh();
    this.context.post({ type: "reply", id: this.request.id, reply });
  }

  private refresh(): void {
    for (const button of this.buttons) {
      // The `disabled` attribute would take the focus from the button while its answer is being sent.
      button.setAttribute("aria-disabled", String(this.isSending));
      button.disabled = button.dataset["needs"] === "answers" && this.form?.answers() === undefined;
    }
  }
}

/** What the user may have written in an answer. */
function textsOf(reply: RequestAnswer): readonly string[] {
  switch (reply.type) {
    case "permission":
      return [reply.message ?? ""];
    case "question":
      return reply.answers.flat();
    case "dismiss":
      return [];
  }
}

export function requestTitle(request: RequestView, { l10n }: Context): string {
  if (request.kind === "permission") return request.title;
  const { length } = request.questions;
  return length === 1 ? l10n.t("Question") : l10n.t("{0} questions", String(length));
}
