import assert from "node:assert/strict";
import * as vscode from "vscode";

/** The part of the extension's API that this check uses. */
interface Exports {
  ready(): Promise<void>;
  readonly tasks: {
    launch(input: { description: string; prompt: string; agent: string }): Promise<{ readonly id: string }>;
    wait(id: string): Promise<{ readonly id: string; readonly status: string }>;
    output(id: string): Promise<{ readonly result?: string }>;
  };
  readonly server: { stop(): Promise<void> };
}

/** Runs one task in the extension host, as a user would start it. Rejects if that fails. */
export async function run(): Promise<void> {
  const extension = vscode.extensions.getExtension<Exports>("async-agents.opencode-async-agents");
  assert.ok(extension, "VS Code did not load the extension");
  const { ready, tasks, server } = await extension.activate();
  try {
    const launched = await tasks.launch({
      description: "Look at the sample",
      prompt: "What could be better in src/greet.js?",
      agent: "general",
    });
    console.log(`Launched ${launched.id}`);
    await ready();
    const { status } = await tasks.wait(launched.id);
    const { result } = await tasks.output(launched.id);
    assert.equal(status, "completed", `the task ended as ${status}`);
    assert.ok(result, "the task has no result");
    console.log(`It ended as ${status} and answered:\n\n${result}`);
  } finally {
    await server.stop();
  }
}
