import assert from "node:assert/strict";
import type { HostMessage, ReturnedText } from "../../../src/protocol/output.ts";
import { Outbox } from "../../../src/ui/output/outbox.ts";
import type { OutputParts } from "../../../src/ui/output/output-parts.ts";
import { silentLogger } from "../rpc/fake-host.ts";

describe("what a user sends from a panel", () => {
  let listens: boolean;
  let posted: HostMessage[];
  let offered: ReturnedText[];
  let outbox: Outbox;
  /** Lets the server answer. */
  let answer: () => void;

  beforeEach(() => {
    listens = true;
    posted = [];
    offered = [];
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const tasks = {
      steer: () => answered.then(() => Promise.reject(new Error("It has ended."))),
      continue: () => answered.then(() => Promise.reject(new Error("It was deleted."))),
      withdraw: () => answered.then(() => "Then add tests"),
    } as unknown as OutputParts["tasks"];
    const editor = {
      describe: (error: unknown) => String(error),
      openSession: assert.fail,
      offerText: (returned: ReturnedText) => void offered.push(returned),
    };
    outbox = new Outbox("ses_1", { tasks, logger: silentLogger }, editor, (message) => {
      if (listens) posted.push(message);
      return listens;
    });
  });

  const refused = { text: "Use tabs", error: "Error: It has ended." };
  const withdrawn = { text: "Then add tests" };
  const byText = (returned: readonly ReturnedText[]): readonly ReturnedText[] =>
    returned.toSorted((one, other) => one.text.localeCompare(other.text));
  const both = (): Promise<unknown> => Promise.all([outbox.send("Use tabs", "now"), outbox.withdraw()]);

  it("returns to the page if it is refused or withdrawn, also to one that is shown later, and once", async () => {
    listens = false;
    const returning = both();
    answer();
    await returning;
    listens = true;
    outbox.deliver();
    const returned = posted.flatMap((message) => ("returned" in message && message.returned) || []);
    assert.deepEqual(byText(returned), [withdrawn, refused]);
    outbox.dispose();
    assert.deepEqual(offered, []);
  });

  it("is offered outside the panel if it returns after that was closed", async () => {
    const returning = both();
    outbox.dispose();
    answer();
    await returning;
    assert.deepEqual(byText(offered), [withdrawn, refused]);
  });

  it("is offered outside the panel if that is closed before it was shown again", async () => {
    listens = false;
    const returning = both();
    answer();
    await returning;
    assert.deepEqual(offered, []);
    outbox.dispose();
    assert.deepEqual(byText(offered), [withdrawn, refused]);
  });

  it("is told of outside the panel if it has no text and fails after that was closed", async () => {
    const continuing = outbox.send("", "continue");
    outbox.dispose();
    answer();
    await continuing;
    assert.deepEqual(offered, [{ text: "", error: "Error: It was deleted." }]);
  });
});
