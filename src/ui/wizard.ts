/** The user wants the step before. */
export const BACK = Symbol("back");

/** What came of a question; undefined: the user left, or it had no more use. */
export type Answer<T> = T | typeof BACK | undefined;

/** Where a question stands among those that are asked one after the other. */
export interface Place {
  /** 1 for the first one. */
  readonly step?: number | undefined;
  /** Shown from two on. */
  readonly totalSteps?: number | undefined;
  readonly canGoBack?: boolean | undefined;
}

/** One step of a wizard: it gets what is known so far, and says what is known after it. */
export interface Step<S> {
  /** Whether it is taken at all; left out: it always is. */
  readonly applies?: (state: S) => boolean;
  readonly take: (state: S, place: Place) => Promise<Answer<Move<S>>>;
}

export interface Move<S> {
  readonly state: S;
  /** Left out: the next step. One that is not in the wizard's list is a detour, from which back leads here. */
  readonly to?: Step<S> | "end";
}

/**
 * Takes steps one after the other, the last of which asks nothing: it does what the others asked for. This is the one
 * place that goes back, and that ends where the user leaves a question.
 * @returns what was known at the end, and whether the last step was taken
 */
export async function runWizard<S>(
  steps: readonly Step<S>[],
  begin: S,
  first = 0,
): Promise<{ readonly state: S; readonly isFinished: boolean }> {
  let state = begin;
  const applies = (step: Step<S>): boolean => step.applies?.(state) ?? true;
  let detour: Step<S> | undefined;
  for (let at = first; ;) {
    const step = detour ?? steps[at];
    if (!step) return { state, isFinished: at >= steps.length };
    const questions = steps.slice(0, -1).filter((each) => each === step || applies(each));
    const index = questions.indexOf(step);
    const place = detour
      ? { canGoBack: true }
      : { step: index + 1, totalSteps: questions.length, canGoBack: index > 0 };
    const answer = await step.take(state, place);
    if (answer === undefined) return { state, isFinished: false };
    if (answer === BACK) {
      if (!detour) at = steps.findLastIndex((each, index) => index < at && applies(each));
      detour = undefined;
      continue;
    }
    ({ state } = answer);
    const { to } = answer;
    if (to === "end") return { state, isFinished: false };
    const target = to ? steps.indexOf(to) : steps.findIndex((each, index) => index > at && applies(each));
    detour = target < 0 ? to : undefined;
    if (!detour) at = target < 0 ? steps.length : target;
  }
}
