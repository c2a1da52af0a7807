import type { QuestionsView, QuestionView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import type { ReplyDraft } from "./page-state.ts";

interface Field {
  readonly options: readonly { readonly answer: string; readonly input: HTMLInputElement }[];
  /** The choice and the text field of a custom answer. */
  readonly own: { readonly input: HTMLInputElement; readonly text: HTMLInputElement } | undefined;
}

/** The questions of a request, each answered by options or a custom answer. */
export class QuestionForm {
  readonly element = h("div", { class: "questions" });
  private readonly fields: readonly Field[];

  constructor(
    private readonly context: Context,
    private readonly request: QuestionsView,
    draft: ReplyDraft | undefined,
    private readonly onDidEdit: (draft: ReplyDraft) => void,
  ) {
    this.fields = request.questions.map((question, index) => this.field(question, index));
    for (const [index, { chosen, own, takesOwn }] of (draft?.answers ?? []).entries()) {
      const field = this.fields[index];
      for (const { answer, input } of field?.options ?? []) input.checked = chosen.includes(answer);
      if (!field?.own) continue;
      field.own.text.value = own;
      field.own.input.checked = takesOwn;
    }
  }

  /** One list per question; undefined until every question has an answer. */
  answers(): readonly (readonly string[])[] | undefined {
    const answers = this.fields.map(({ options, own }) => [
      ...options.filter(({ input }) => input.checked).map(({ answer }) => answer),
      ...(own?.input.checked && own.text.value.trim() !== "" ? [own.text.value.trim()] : []),
    ]);
    return answers.every(({ length }) => length > 0) ? answers : undefined;
  }

  private field(question: QuestionView, index: number): Field {
    const { l10n } = this.context;
    const name = `${this.request.id}-${index}`;
    const type = question.multiple ? "checkbox" : "radio";
    const options = question.options.map((option) => {
      const input = h("input", { type, name });
      return { ...option, input };
    });
    const own = question.custom
      ? {
          input: h("input", { type, name, "aria-label": l10n.t("Other answer") }),
          text: h("input", {
            type: "text",
            class: "own-answer",
            dir: "auto",
            "aria-label": l10n.t("Other answer"),
            placeholder: l10n.t("Other answer"),
          }),
        }
      : undefined;
    own?.input.addEventListener("click", () => own.text.focus());
    own?.text.addEventListener("input", () => (own.input.checked = own.text.value.trim() !== ""));
    const box = h(
      "fieldset",
      {},
      h(
        "legend",
        { dir: "auto" },
        question.header === "" ? undefined : h("span", { class: "question-header" }, question.header),
        question.question,
      ),
      question.multiple && h("p", { class: "request-note" }, l10n.t("You can select several.")),
      ...options.map(({ input, label, description }) =>
        h(
          "label",
          { class: "option" },
          input,
          h(
            "span",
            { dir: "auto" },
            h("span", { class: "option-label" }, label),
            description !== "" && h("span", { class: "option-description" }, description),
          ),
        ),
      ),
      own && h("div", { class: "option" }, own.input, own.text),
    );
    box.addEventListener("input", () => this.onDidEdit({ answers: this.fields.map(draftOf) }));
    this.element.append(box);
    return { options, own };
  }
}

function draftOf({ options, own }: Field): NonNullable<ReplyDraft["answers"]>[number] {
  return {
    chosen: options.filter(({ input }) => input.checked).map(({ answer }) => answer),
    own: own?.text.value ?? "",
    takesOwn: own?.input.checked === true,
  };
}
