import type { Task } from "../../engine/task.ts";
import type { HostMessage, ReturnedText, Sending } from "../../protocol/output.ts";
import type { OutputEditor, OutputParts } from "./output-parts.ts";

/** Sends the messages that the user writes in a panel, and returns those that were refused or withdrawn. */
export class Outbox {
  /** What the page, which doesn't keep sent texts, could not take yet. */
  private undelivered: readonly HostMessage[] = [];

  /** @param post tells whether the page is listening, and thus got the message */
  constructor(
    private readonly taskID: string,
    private readonly parts: Pick<OutputParts, "tasks" | "logger">,
    private readonly editor: Pick<OutputEditor, "describe" | "openSession">,
    private readonly post: (message: HostMessage) => boolean,
  ) {}

  async send(text: string, how: Sending): Promise<void> {
    try {
      const { id } = await this.sent(text, how);
      this.post({ type: "send-done" });
      if (id !== this.taskID) this.editor.openSession(id);
    } catch (error) {
      this.parts.logger.error(`Couldn't send a message to ${this.taskID}.`, error);
      this.keep({ type: "send-done", returned: { text, error: this.editor.describe(error) } });
    }
  }

  /** Takes back the message that waits. */
  async withdraw(): Promise<void> {
    const returned: ReturnedText = await this.parts.tasks.withdraw(this.taskID).then(
      (text) => ({ text }),
      (error: unknown) => ({ text: "", error: this.editor.describe(error) }),
    );
    this.keep({ type: "withdrawn", returned });
  }

  /** Called when the page is listening. */
  deliver(): void {
    this.undelivered = this.undelivered.filter((message) => !this.post(message));
  }

  private sent(text: string, how: Sending): Promise<Task> {
    const { tasks } = this.parts;
    switch (how) {
      case "resume":
        return tasks.resume(this.taskID, text);
      case "now":
        return tasks.steer(this.taskID, text);
      case "after":
        return tasks.steer(this.taskID, text, { after: true });
      case "continue":
        return tasks.continue(this.taskID, text === "" ? undefined : text);
    }
  }

  private keep(message: HostMessage): void {
    if (!this.post(message)) this.undelivered = [...this.undelivered, message];
  }
}
