import type { Message, MessageInfo, Part } from "./server-model.ts";
import type { TranscriptChange } from "./transcript.ts";

/** The messages of a conversation, updated by changes. */
export class TranscriptMessages {
  private infos: MessageInfo[] = [];
  private readonly parts = new Map<string, Map<string, Part>>();

  /** The oldest first. */
  all(): readonly Message[] {
    return this.infos.map((info) => ({ info, parts: [...(this.parts.get(info.id)?.values() ?? [])] }));
  }

  has(messageID: string): boolean {
    return this.infos.some(({ id }) => id === messageID);
  }

  /** Replaces each part with the result of `change`. */
  changeParts(change: (part: Part) => Part): void {
    for (const parts of this.parts.values()) for (const [id, part] of parts) parts.set(id, change(part));
  }

  /** Applies a change. False if it had no effect because its part is unknown. */
  apply(change: TranscriptChange): boolean {
    switch (change.type) {
      case "reset":
        this.infos = change.messages.map(({ info }) => info);
        this.parts.clear();
        for (const { info, parts } of change.messages)
          this.parts.set(info.id, new Map(parts.map((part) => [part.id, part])));
        return true;
      case "message": {
        const { info } = change;
        const position = this.infos.findLastIndex(({ id }) => id === info.id);
        if (position === -1) this.infos.push(info);
        else this.infos[position] = info;
        return true;
      }
      case "message-removed":
        this.infos = this.infos.filter(({ id }) => id !== change.messageID);
        this.parts.delete(change.messageID);
        return true;
      case "part":
        this.partsOf(change.part.messageID).set(change.part.id, change.part);
        return true;
      case "part-removed":
        this.partsOf(change.messageID).delete(change.partID);
        return true;
      case "text": {
        const parts = this.partsOf(change.messageID);
        const part = parts.get(change.partID);
        if (!part || !("text" in part)) return false;
        parts.set(part.id, { ...part, text: part.text + change.delta });
        return true;
      }
    }
  }

  private partsOf(messageID: string): Map<string, Part> {
    let parts = this.parts.get(messageID);
    if (!parts) {
      parts = new Map<string, Part>();
      this.parts.set(messageID, parts);
    }
    return parts;
  }
}
