import type { Task } from "../../engine/task.ts";
import type { Disposable } from "../../engine/event.ts";
import type { HostMessage, ReturnedText, Sending } from "../../protocol/output.ts";
import type { OutputEditor, OutputParts } from "./output-parts.ts";

/** A message that the page must get, perhaps with a text for its box. */
type Lasting = HostMessage & { readonly returned?: ReturnedText | undefined };

/**
 * Sends the messages that the user writes in a panel, and returns those that were refused or withdrawn. Keeps what a page
 * that isn't listening must get.
 */
export class Outbox implements Disposable {
  /** What the page, which doesn't keep sent texts, could not take yet. */
  private undelivered: readonly Lasting[] = [];
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
      this.give({ type: "send-done", returned: { text, error: this.editor.describe(error) } });
    }
  }

  /** Takes back the message that waits. */
  async withdraw(): Promise<void> {
    const returned: ReturnedText = await this.parts.tasks.withdraw(this.taskID).then(
      (text) => ({ text }),
      (error: unknown) => ({ text: "", error: this.editor.describe(error) }),
    );
    this.give({ type: "withdrawn", returned });
  }

  /** Called when the page is listening. */
  deliver(): void {
    this.undelivered = this.undelivered.filter((message) => !this.post(message));
  }

  /** The panel is closed: what returns is told of outside it. */
  dispose(): void {
    this.isClosed = true;
    for (const message of this.undelivered) this.offer(message);
  }

  /** Gives the page a message as soon as it is listening. */
  give(message: Lasting): void {
    if (this.isClosed) this.offer(message);
    else if (!this.post(message)) this.undelivered = [...this.undelivered, message];
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

  private offer({ returned }: Lasting): void {
    if (returned) this.editor.offerText(returned);
  }
}
