import assert from "node:assert/strict";
import { BACK, runWizard, type Answer, type Move, type Place, type Step } from "../../../src/ui/wizard.ts";

type Answering = (state: string) => Answer<Move<string>>;

describe("a wizard", () => {
  let taken: string[];
  let places: Place[];

  /** A step that returns these answers one after the other. */
  function step(
    name: string,
    answers: readonly Answering[],
    applies?: (state: string) => boolean,
  ): Step<string> {
    let count = 0;
    return {
      ...(applies && { applies }),
      take: async (state, place) => {
        taken.push(`${name} ${state}`.trim());
        places.push(place);
        const answer = answers[count++];
        assert.ok(answer, `${name} is taken once more than it should`);
        return answer(state);
      },
    };
  }

  const add =
    (text: string, to?: Move<string>["to"]): Answering =>
    (state) => ({ state: state + text, ...(to && { to }) });
  const back: Answering = () => BACK;
  const leave: Answering = () => undefined;
  const last = step(
    "last",
    Array.from({ length: 9 }, () => add(".")),
  );

  beforeEach(() => {
    taken = [];
    places = [];
  });

  it("takes one step after the other, each with the result of the previous one", async () => {
    assert.deepEqual(await runWizard([step("a", [add("1")]), step("b", [add("2")]), last], ""), {
      state: "12.",
      end: "finished",
    });
    assert.deepEqual(taken, ["a", "b 1", "last 12"]);
    assert.deepEqual(places.slice(0, 2), [
      { step: 1, totalSteps: 2, canGoBack: false },
      { step: 2, totalSteps: 2, canGoBack: true },
    ]);
  });

  it("goes back to what precedes it, if there is something", async () => {
    const { end } = await runWizard([step("a", [back]), last], "", { canGoBack: true });
    assert.equal(end, "back");
    assert.equal(places[0]?.canGoBack, true);
  });

  it("goes back to the previous step with its state; from the first step it ends", async () => {
    const steps = [step("a", [add("1"), back]), step("b", [back]), last];
    assert.deepEqual(await runWizard(steps, ""), { state: "1", end: "back" });
    assert.deepEqual(taken, ["a", "b 1", "a 1"]);
  });

  it("ends when the user leaves a step", async () => {
    const steps = [step("a", [add("1")]), step("b", [leave]), last];
    assert.deepEqual(await runWizard(steps, ""), { state: "1", end: "left" });
  });

  it("skips steps that don't apply, also on the way back, and does not count them", async () => {
    const steps = [
      step("a", [add("1"), add("!")]),
      step("b", [add("2")], (state) => state.includes("!")),
      step("c", [back, add("3")]),
      last,
    ];
    assert.equal((await runWizard(steps, "")).state, "1!23.");
    assert.deepEqual(taken, ["a", "c 1", "a 1", "b 1!", "c 1!2", "last 1!23"]);
    assert.deepEqual(
      places.slice(0, -1).map((place) => `${place.step}/${place.totalSteps}`),
      ["1/2", "2/2", "1/2", "2/3", "3/3"],
    );
  });

  it("goes back from a detour to its origin, and on from it to the next step", async () => {
    const detour = step("detour", [back, add("x")]);
    const steps = [step("a", [add("1")]), step("b", [add("2", detour), add("3", detour)]), last];
    assert.equal((await runWizard(steps, "")).state, "123x.");
    assert.deepEqual(taken, ["a", "b 1", "detour 12", "b 12", "detour 123", "last 123x"]);
    assert.deepEqual(places[2], { canGoBack: true });
  });

  it("goes to the step that a step names, even itself or an earlier one", async () => {
    const first: Step<string> = step("a", [
      (state) => ({ state: `${state}1`, to: first }),
      add("2"),
      add("3"),
    ]);
    const wrong = step("wrong", [(state) => ({ state: `${state}?`, to: first }), add(".")]);
    assert.equal((await runWizard([first, wrong], "")).state, "12?3.");
  });

  it("can begin in the middle and still go back", async () => {
    const steps = [step("a", [add("1")]), step("b", [back, add("2")]), last];
    assert.equal((await runWizard(steps, "", { first: 1 })).state, "12.");
    assert.deepEqual(taken, ["b", "a", "b 1", "last 12"]);
  });

  it("ends early if a step says so", async () => {
    assert.deepEqual(await runWizard([step("a", [add("1", "end")]), last], ""), {
      state: "1",
      end: "left",
    });
  });
});
