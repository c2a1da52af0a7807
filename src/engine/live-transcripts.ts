import { Emitter, type Disposable, logged } from "./event.ts";
import { messageOf } from "./errors.ts";
import type { AgentServer, Logger } from "./ports.ts";
import { Serial } from "./serial.ts";
import { sessionOf, type Message, type MessageInfo, type Part, type SessionEvent } from "./server-model.ts";
import { TranscriptMessages } from "./transcript-messages.ts";
import type { Transcript, TranscriptChange } from "./transcript.ts";

/** A part whose text has not ended yet, with the pieces of text that have arrived. */
interface StreamedPart {
  readonly id: string;
  readonly texts: string[];
}

/**
 * Conversations followed live. The server stores streamed text only when a part ends, so the text so far is kept here,
 * for conversations that are opened in the middle of a stream.
 */
export class LiveTranscripts implements Disposable {
  private readonly opened = new Set<LiveTranscript>();
  /** The parts that are being streamed, by session. Few at once, so that finding one is faster than a map of them. */
  private readonly streaming = new Map<string, StreamedPart[]>();

  constructor(
    private readonly server: AgentServer,
    private readonly logger: Logger,
  ) {}

  async open(sessionID: string): Promise<Transcript> {
    const transcript = new LiveTranscript(sessionID, this.logger, () => this.opened.delete(transcript));
    // Follow the events before reading the messages, so that nothing is missed in between.
    this.opened.add(transcript);
    try {
      await transcript.reads.run(async () =>
        transcript.load(await this.server.messages(sessionID), (part) => this.withStreamedText(part)),
      );
      return transcript;
    } catch (error) {
      transcript.dispose();
      throw error;
    }
  }

  /** Forgets streamed text, pieces of which are missed from now on. */
  disconnect(): void {
    this.streaming.clear();
  }

  /** Reads everything again at each connect, since events may have been missed. */
  async reload(): Promise<void> {
    await Promise.all([...this.opened].map((transcript) => this.read(transcript)));
  }

  /** Reads open conversations without this message again: writing a fork's history before it emits no events. */
  async reloadBefore({ id, sessionID }: MessageInfo): Promise<void> {
    const opened = [...this.opened].filter(
      (transcript) => transcript.sessionID === sessionID && !transcript.has(id),
    );
    await Promise.all(opened.map((transcript) => this.read(transcript)));
  }

  private read(transcript: LiveTranscript): Promise<void> {
    return transcript.reads.run(async () => {
      transcript.prepare();
      try {
        transcript.load(await this.server.messages(transcript.sessionID), (part) =>
          this.withStreamedText(part),
        );
      } catch (error) {
        this.logger.warn(`Couldn't read a conversation again: ${messageOf(error)}`);
        transcript.goOn();
      }
    });
  }

  accept(event: SessionEvent): void {
    this.keepStreamedText(event);
    for (const transcript of this.opened) transcript.accept(event);
  }

  dispose(): void {
    for (const transcript of [...this.opened]) transcript.dispose();
    this.streaming.clear();
  }

  private keepStreamedText(event: SessionEvent): void {
    if (event.type === "part-delta") {
      if (event.field === "text") this.streamed(event.sessionID, event.partID)?.texts.push(event.delta);
    } else if (event.type === "part-changed") {
      const { part } = event;
      if (part.type !== "text" && part.type !== "reasoning") return;
      const { id, sessionID, start, end, text } = part;
      const others = (this.streaming.get(sessionID) ?? []).filter((each) => each.id !== id);
      if (start !== undefined && end === undefined) others.push({ id, texts: [text] });
      if (others.length > 0) this.streaming.set(sessionID, others);
      else this.streaming.delete(sessionID);
    } else if (event.type === "session-status" && event.status.type === "idle") {
      this.streaming.delete(event.sessionID);
    }
  }

  private withStreamedText(part: Part): Part {
    const streamed = this.streamed(part.sessionID, part.id);
    return streamed && "text" in part ? { ...part, text: streamed.texts.join("") } : part;
  }

  private streamed(sessionID: string, partID: string): StreamedPart | undefined {
    return this.streaming.get(sessionID)?.find(({ id }) => id === partID);
  }
}

class LiveTranscript implements Transcript {
  private readonly content = new TranscriptMessages();
  /** Events received before the conversation was read. Undefined afterwards. */
  private early: SessionEvent[] | undefined = [];
  /** Reads run one at a time, so that a late response of an older read cannot undo newer changes. */
  readonly reads = new Serial();
  private readonly changes: Emitter<TranscriptChange>;
  readonly onDidChange;

  constructor(
    readonly sessionID: string,
    logger: Logger,
    private readonly onDispose: () => void,
  ) {
    this.changes = new Emitter(logged(logger, "a conversation"));
    this.onDidChange = this.changes.event;
  }

  get messages(): readonly Message[] {
    return this.content.all();
  }

  has(messageID: string): boolean {
    return this.content.has(messageID);
  }

  /** Holds back events from now until {@link load}. */
  prepare(): void {
    this.early ??= [];
  }

  /** Cancels {@link prepare}: applies the events held back to the present messages. */
  goOn(): void {
    const kept = this.early ?? [];
    this.early = undefined;
    for (const event of kept) this.accept(event);
  }

  load(messages: readonly Message[], withStreamedText: (part: Part) => Part): void {
    this.content.apply({ type: "reset", messages });
    for (const event of this.early ?? []) {
      const change = changeOf(event);
      // Applies only complete parts and messages; `withStreamedText` below includes the deltas.
      if (change && change.type !== "text") this.content.apply(change);
    }
    this.early = undefined;
    this.content.changeParts(withStreamedText);
    this.changes.fire({ type: "reset", messages: this.messages });
  }

  accept(event: SessionEvent): void {
    if (sessionOf(event) !== this.sessionID) return;
    if (this.early) {
      this.early.push(event);
      return;
    }
    const change = changeOf(event);
    if (change && this.content.apply(change)) this.changes.fire(change);
  }

  dispose(): void {
    this.onDispose();
    this.changes.dispose();
  }
}

/** What an event changes in the conversation of its session. Undefined if nothing. */
function changeOf(event: SessionEvent): TranscriptChange | undefined {
  switch (event.type) {
    case "message-changed":
      return { type: "message", info: event.info };
    case "message-removed":
      return { type: "message-removed", messageID: event.messageID };
    case "part-changed":
      return { type: "part", part: event.part };
    case "part-removed":
      return { type: "part-removed", messageID: event.messageID, partID: event.partID };
    case "part-delta":
      if (event.field !== "text") return undefined;
      return { type: "text", messageID: event.messageID, partID: event.partID, delta: event.delta };
    default:
      return undefined;
  }
}
