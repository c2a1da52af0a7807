import assert from "node:assert/strict";
import fc from "fast-check";
import { settled } from "../support/manual-clock.ts";
import { ToolWindow } from "../unit/tools/tool-window.ts";
import { hostileText } from "./hostile.ts";
import type { OpenTarget, Target } from "./target.ts";

const nonEmpty = hostileText.filter((text) => text.trim() !== "");

/** Prompts and answers reach the other side unchanged, and a description is one line. */
export const prompts: Target = {
  name: "prompts",
  async open(): Promise<OpenTarget> {
    const window = await ToolWindow.open();
    return {
      property: fc.asyncProperty(nonEmpty, hostileText, hostileText, async (prompt, description, answer) => {
        const task = await window.launch({ prompt, description, by: "person" });
        assert.doesNotMatch(window.task(task.id).description, /\n/);
        assert.deepEqual(await textsIn(task.id), [prompt]);
        window.server.finish(task.id, answer);
        await settled();
        assert.equal(window.task(task.id).status, "completed");
        // Blank answers count as none.
        assert.equal(await window.engine.lastAnswer(task.id), answer.trim() && answer);
        assert.match(await window.text("list"), /\S/);
        await window.engine.clear(task.id, { deleteSession: true });
      }),
      close: () => window.dispose(),
    };

    async function textsIn(sessionID: string): Promise<readonly string[]> {
      const messages = await window.server.messages(sessionID);
      return messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
      );
    }
  },
};
