import { partID } from "./ids.ts";
import { ServerFailure, type AgentServer, type Clock } from "./ports.ts";
import type { Entry } from "./registry.ts";
import type { SentPrompt } from "./running-turn.ts";
import type { Message, Part, Prompt, PromptFile, PromptPart } from "./server-model.ts";
import type { TaskRecord } from "./task.ts";

/** Whether all of a message is stored. The text that users read is sent as the last part, and so stored last. */
export function hasArrived(message: Message | undefined): boolean {
  return message?.parts.some(isOwnText) ?? false;
}

/** Text that was written by someone, not added to tell the model something. */
export function isOwnText(part: Part): boolean {
  return part.type === "text" && !part.synthetic;
}

/** Whether the server has stored a prompt. Undefined where that cannot be known now. */
export async function isStored(
  server: AgentServer,
  { id, promptMessageID }: Pick<TaskRecord, "id" | "promptMessageID">,
): Promise<boolean | undefined> {
  try {
    return hasArrived(await server.message(id, promptMessageID));
  } catch {
    return undefined;
  }
}

/**
 * The parts of a message of ours, given in the order in which they are read: with the same IDs each time, so that
 * sending it again adds none, and in the order in which they are to be stored.
 */
export function partsOf(messageID: string, parts: readonly PromptPart[]): readonly PromptPart[] {
  return parts
    .map((part, index) => ({ ...part, id: partID(messageID, index) }))
    .sort((a, b) => Number(!a.synthetic) - Number(!b.synthetic));
}

/** What a task is given to do. */
export interface PromptInput {
  readonly text: string;
  /** What the model alone reads before it. */
  readonly preamble?: string | undefined;
  readonly files?: readonly PromptFile[] | undefined;
  /** Store only; nothing runs. */
  readonly noReply?: boolean | undefined;
}

/** Sends prompts to tasks; called with the task's queue held. */
export class PromptSender {
  constructor(
    private readonly server: AgentServer,
    private readonly clock: Clock,
  ) {}

  /**
   * Gives a task the prompt that its record names. Rejects where the server refuses it. Where the server gives no answer
   * the turn watcher finds out whether the prompt is there, and sends it again if not.
   */
  async send(entry: Entry, { text, preamble, files, noReply }: PromptInput): Promise<void> {
    const { agent, model, promptMessageID: messageID } = entry.record;
    const background = preamble === undefined ? [] : [{ text: preamble, synthetic: true }];
    const parts = partsOf(messageID, [...background, { text }]);
    await this.deliver(entry, { messageID, agent, model, parts, files, noReply });
  }

  /** Sends once more what may not have arrived. */
  async sendAgain(entry: Entry, { prompt }: SentPrompt): Promise<void> {
    await this.deliver(entry, prompt);
  }

  private async deliver(entry: Entry, prompt: Prompt): Promise<void> {
    const sent: SentPrompt = { kind: "sent", prompt, at: this.clock.now(), isDoubtful: false };
    if (entry.turn) entry.turn.prompt = sent;
    try {
      await this.server.prompt(entry.record.id, prompt);
    } catch (error) {
      const isKnown = !(error instanceof ServerFailure && error.reason === "unreachable");
      // An event may have told meanwhile that the prompt is there.
      if (entry.turn?.prompt === sent)
        entry.turn.prompt = isKnown ? { kind: "unknown" } : { ...sent, isDoubtful: true };
      if (isKnown) throw error;
    }
  }
}
