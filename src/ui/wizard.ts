/** The answer of a user who wants to go back to the previous step. */
export const BACK = Symbol("back");

/** The answer to a question; undefined if the user left, or if the question became obsolete. */
export type Answer<T> = T | typeof BACK | undefined;

/** The position of a question in a sequence. */
export interface Place {
  /** One-based. */
  readonly step?: number | undefined;
  /** Shown if at least 2. */
  readonly totalSteps?: number | undefined;
  readonly canGoBack?: boolean | undefined;
}

/** One step of a wizard: gets the state so far, and gives the state after it. */
export interface Step<S> {
  /** Whether the step is taken; by default always. */
  readonly applies?: (state: S) => boolean;
  readonly take: (state: S, place: Place) => Promise<Answer<Move<S>>>;
}

export interface Move<S> {
  readonly state: S;
  /** The next step by default. A step that isn't in the wizard's list is a detour; Back leads from it to this step. */
  readonly to?: Step<S> | "end";
}

/** How a wizard ended: its last step was taken, the user left it, or they went back from its first step. */
export type WizardEnd = "finished" | "left" | "back";

/**
 * Takes steps in order. The last one asks nothing; it does what the others asked for. This function alone goes back,
 * and ends when the user leaves a question.
 * @param canGoBack whether something precedes the wizard to which the user can go back
 */
export async function runWizard<S>(
  steps: readonly Step<S>[],
  begin: S,
  { first = 0, canGoBack = false }: { readonly first?: number; readonly canGoBack?: boolean } = {},
): Promise<{ readonly state: S; readonly end: WizardEnd }> {
  let state = begin;
  const applies = (step: Step<S>): boolean => step.applies?.(state) ?? true;
  let detour: Step<S> | undefined;
  for (let at = first; ;) {
    const step = detour ?? steps[at];
    if (!step) return { state, end: at < 0 ? "back" : "finished" };
    const questions = steps.slice(0, -1).filter((each) => each === step || applies(each));
    const index = questions.indexOf(step);
    const place = detour
      ? { canGoBack: true }
      : { step: index + 1, totalSteps: questions.length, canGoBack: canGoBack || index > 0 };
    const answer = await step.take(state, place);
    if (answer === undefined) return { state, end: "left" };
    if (answer === BACK) {
      if (!detour) at = steps.findLastIndex((each, index) => index < at && applies(each));
      detour = undefined;
      continue;
    }
    ({ state } = answer);
    const { to } = answer;
    if (to === "end") return { state, end: "left" };
    const target = to ? steps.indexOf(to) : steps.findIndex((each, index) => index > at && applies(each));
    detour = target < 0 ? to : undefined;
    if (!detour) at = target < 0 ? steps.length : target;
  }
}
