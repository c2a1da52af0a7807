import { hasArrived, isOwnText } from "./arrival.ts";
import type { Disposable } from "./event.ts";
import type { EnginePorts } from "./ports.ts";
import type { Prompt, ServerEvent } from "./server-model.ts";

/** How long to wait for the event that a prompt was stored, before asking the server. */
const STORING_MS = 5_000;

/** `lost`: the connection was lost first, so it is unknown whether the prompt is stored. */
export type Arrival = "stored" | "missing" | "lost";

/** Sends prompts and waits until the server has stored them, which it does some time after it has accepted them. */
export class ConfirmedPrompts {
  /** Callbacks by the message ID of a prompt that was sent. Called when it is stored, or the connection is lost. */
  private readonly sent = new Map<string, (isStored: boolean) => void>();

  constructor(private readonly ports: Pick<EnginePorts, "server" | "clock">) {}

  async send(sessionID: string, prompt: Prompt): Promise<Arrival> {
    const { server, clock } = this.ports;
    const { messageID } = prompt;
    let timeout: Disposable | undefined;
    let arrive: (how: Arrival) => void = () => undefined;
    const arrival = new Promise<Arrival>((resolve) => (arrive = resolve));
    // Registered before sending, as the event can arrive before the response.
    this.sent.set(messageID, (isStored) => arrive(isStored ? "stored" : "lost"));
    try {
      await server.prompt(sessionID, prompt);
      timeout = clock.after(STORING_MS, () => arrive("missing"));
      const outcome = await arrival;
      return outcome === "missing" && hasArrived(await server.message(sessionID, messageID))
        ? "stored"
        : outcome;
    } finally {
      this.sent.delete(messageID);
      timeout?.dispose();
    }
  }

  accept(event: ServerEvent): void {
    if (event.type === "part-changed" && isOwnText(event.part)) this.sent.get(event.part.messageID)?.(true);
  }

  disconnect(): void {
    for (const arrive of [...this.sent.values()]) arrive(false);
  }
}
