import assert from "node:assert/strict";
import { LiveTranscripts } from "../../../src/engine/live-transcripts.ts";
import type { AgentServer, Logger } from "../../../src/engine/ports.ts";
import type { Message, UserMessageInfo } from "../../../src/engine/server-model.ts";
import { settled } from "../../support/manual-clock.ts";

const SESSION = "ses_1";

function prompt(id: string): UserMessageInfo {
  return { role: "user", id, sessionID: SESSION, created: 1, agent: "general" };
}

describe("Conversations followed live", () => {
  /** The messages that the server would return now. */
  let stored: Message[];
  /** Pending answers, each with the messages at the time of the request. */
  let answers: (() => void)[];
  let transcripts: LiveTranscripts;

  beforeEach(() => {
    stored = [];
    answers = [];
    const messages = (): Promise<readonly Message[]> => {
      const answer = [...stored];
      return new Promise((resolve) => answers.push(() => resolve(answer)));
    };
    const warn = (message: string): never => assert.fail(message);
    transcripts = new LiveTranscripts({ messages } as unknown as AgentServer, { warn } as unknown as Logger);
  });

  /** Completes the oldest pending read. */
  async function answer(): Promise<void> {
    await settled();
    (answers.shift() ?? assert.fail("nothing is being read"))();
    await settled();
  }

  function tell(info: UserMessageInfo): void {
    stored = [...stored, { info, parts: [] }];
    transcripts.accept({ type: "message-changed", info });
  }

  it("keep a message that arrived while they were reloaded twice", async () => {
    const opening = transcripts.open(SESSION);
    await answer();
    const transcript = await opening;
    const reloads = Promise.all([transcripts.reload(), transcripts.reload()]);
    await answer();
    tell(prompt("msg_1"));
    await answer();
    await reloads;
    assert.deepEqual(
      transcript.messages.map(({ info }) => info.id),
      ["msg_1"],
    );
  });

  it("are reloaded before a prompt that they don't have, and not for one that they have", async () => {
    const opening = transcripts.open(SESSION);
    await answer();
    await opening;
    const reading = transcripts.reloadBefore(prompt("msg_1"));
    tell(prompt("msg_1"));
    await answer();
    await reading;
    await transcripts.reloadBefore(prompt("msg_1"));
    assert.equal(answers.length, 0);
  });
});
