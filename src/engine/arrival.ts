import { partID } from "./ids.ts";
import { ServerFailure, type AgentServer, type Clock } from "./ports.ts";
import type { Entry } from "./registry.ts";
import { sentPrompt, type SentPrompt } from "./running-turn.ts";
import type { Message, Part, Prompt, PromptFile, PromptPart } from "./server-model.ts";
import type { TaskRecord } from "./task.ts";

/** Whether a message is stored completely. The text that users read is sent as the last part, and so is stored last. */
export function hasArrived(message: Message | undefined): boolean {
  return message?.parts.some(isOwnText) ?? false;
}

/** Text that a user or a model wrote, as opposed to synthetic text that only informs the model. */
export function isOwnText(part: Part): boolean {
  return part.type === "text" && !part.synthetic;
}

/** Whether the server has stored a prompt. Undefined if the server does not answer. */
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
 * The parts of a message, given in reading order, returned in the order in which they must be stored. Their IDs are
 * derived from the message's ID, so that sending the message again adds no parts.
 */
export function partsOf(messageID: string, parts: readonly PromptPart[]): readonly PromptPart[] {
  return parts
    .map((part, index) => ({ ...part, id: partID(messageID, index) }))
    .sort((a, b) => Number(!a.synthetic) - Number(!b.synthetic));
}

/** The prompt of a task. */
export interface PromptInput {
  readonly text: string;
  /** Text before the prompt that only the model reads. */
  readonly preamble?: string | undefined;
  readonly files?: readonly PromptFile[] | undefined;
  /** Stores the prompt without starting a turn. */
  readonly noReply?: boolean | undefined;
}

/** Sends prompts to tasks. Its methods must be called from within the task's queue (`entry.serial`). */
export class PromptSender {
  constructor(
    private readonly server: AgentServer,
    private readonly clock: Clock,
  ) {}

  /**
   * Sends the prompt that the task's record names. Rejects if the server refuses it. If the server does not answer, the
   * turn watcher checks whether the prompt has arrived, and sends it again if not.
   */
  async send(entry: Entry, { text, preamble, files, noReply }: PromptInput): Promise<void> {
    const { agent, model, promptMessageID: messageID } = entry.record;
    const background = preamble === undefined ? [] : [{ text: preamble, synthetic: true }];
    const parts = partsOf(messageID, [...background, { text }]);
    await this.deliver(entry, { messageID, agent, model, parts, files, noReply });
  }

  /**
   * Repeats a prompt that may not have arrived: one that this process sent, or a follow-up whose text is in the record.
   * False if there is no such prompt.
   */
  async sendAgain(entry: Entry): Promise<boolean> {
    const { followUp, promptMessageID } = entry.record;
    const sent = sentPrompt(entry);
    if (sent?.isDoubtful) await this.deliver(entry, sent.prompt);
    else if (!sent && followUp?.messageID === promptMessageID)
      await this.send(entry, { text: followUp.text });
    else return false;
    return true;
  }

  private async deliver(entry: Entry, prompt: Prompt): Promise<void> {
    const sent: SentPrompt = { kind: "sent", prompt, at: this.clock.now(), isDoubtful: false };
    if (entry.turn) entry.turn.prompt = sent;
    try {
      await this.server.prompt(entry.record.id, prompt);
      // Only now the server begins to store it.
      if (entry.turn?.prompt === sent) entry.turn.prompt = { ...sent, at: this.clock.now() };
    } catch (error) {
      const isKnown = !(error instanceof ServerFailure && error.reason === "unreachable");
      // An event may have confirmed the prompt in the meantime.
      if (entry.turn?.prompt === sent)
        entry.turn.prompt = isKnown ? { kind: "unknown" } : { ...sent, isDoubtful: true };
      if (isKnown) throw error;
    }
  }
}
