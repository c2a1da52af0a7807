import type { Task } from "../../engine/task.ts";
import type { Disposable } from "../../engine/event.ts";
import type { HostMessage, ReturnedText, Sending } from "../../protocol/output.ts";
import type { OutputEditor, OutputParts } from "./output-parts.ts";

/** A message with a text for the page's box. */
type Return = HostMessage & { readonly type: "send-done" | "withdrawn"; readonly returned: ReturnedText };

/** Sends the messages that the user writes in a panel, and returns those that were refused or withdrawn. */
export class Outbox implements Disposable {
  /** What the page, which doesn't keep sent texts, could not take yet. */
  private undelivered: readonly Return[] = [];
  private isClosed = false;

  /** @param post tells whether the page is listening, and thus got the message */
  constructor(
    private readonly taskID: string,
    private readonly parts: Pick<OutputParts, "tasks" | "logger">,
    private readonly editor: Pick<OutputEditor, "describe" | "openSession" | "offerText">,
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

  /** The panel is closed: texts that return are offered outside it. */
  dispose(): void {
    this.isClosed = true;
    for (const message of this.undelivered) this.offer(message);
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

  private keep(message: Return): void {
    if (this.isClosed) this.offer(message);
    else if (!this.post(message)) this.undelivered = [...this.undelivered, message];
  }

  private offer({ returned }: Return): void {
    if (returned.text !== "") this.editor.offerText(returned);
  }
}
