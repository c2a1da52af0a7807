import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import { ServerFailure } from "../../src/engine/ports.ts";
import { showChanges } from "../../src/ui/changes/show-changes.ts";
import { humanMessage } from "../../src/ui/human-error.ts";
import { write } from "../../src/ui/requests/steps.ts";
import type { Subagent } from "../../src/engine/subagent.ts";

const LINK = "[Fix it](command:workbench.action.quit)";

describe("what agents wrote, where the editor makes links", () => {
  it("makes none in an error that quotes it", () => {
    const errors = [
      new Refusal("session-gone", `Task "${LINK}" is gone.`),
      new ServerFailure("POST /session", "refused", LINK),
    ];
    for (const error of errors) assert.match(humanMessage(error), /\[Fix it\] \(command:/);
  });

  it("makes none where a task changed nothing", async () => {
    const told: string[] = [];
    const { showInformationMessage } = vscode.window;
    vscode.window.showInformationMessage = async (message: string) => void told.push(message);
    try {
      const child = { description: LINK, status: "idle" } as Subagent;
      await showChanges(child, { files: [], hasSnapshots: true });
    } finally {
      vscode.window.showInformationMessage = showInformationMessage;
    }
    assert.match(told.join(), /^"\[Fix it\] \(command:/);
  });

  it("makes none below the box in which a question is answered", async () => {
    const { createInputBox } = vscode.window;
    const boxes: vscode.InputBox[] = [];
    vscode.window.createInputBox = () => {
      const box = createInputBox();
      boxes.push(box);
      return box;
    };
    const over = new AbortController();
    try {
      const step = { title: "Question", placeholder: "", empty: "", text: "", canGoBack: false };
      const answered = write({ ...step, prompt: LINK, draft: () => undefined, over: over.signal });
      assert.match(boxes[0]?.prompt ?? "", /\[Fix it\] \(command:/);
      over.abort();
      assert.equal(await answered, undefined);
    } finally {
      vscode.window.createInputBox = createInputBox;
    }
  });
});
