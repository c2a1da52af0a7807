import { Emitter, type OnListenerError } from "../engine/event.ts";
import type { Message } from "../engine/server-model.ts";
import { TranscriptMessages } from "../engine/transcript-messages.ts";
import type { Transcript, TranscriptChange } from "../engine/transcript.ts";

/** A conversation that the daemon follows for this window. */
export class RemoteTranscript implements Transcript {
  private readonly content = new TranscriptMessages();
  private readonly changes: Emitter<TranscriptChange>;
  readonly onDidChange;

  constructor(
    readonly sessionID: string,
    messages: readonly Message[],
    onListenerError: OnListenerError,
    private readonly onDispose: () => void,
  ) {
    this.changes = new Emitter(onListenerError);
    this.onDidChange = this.changes.event;
    this.content.apply({ type: "reset", messages });
  }

  get messages(): readonly Message[] {
    return this.content.all();
  }

  apply(change: TranscriptChange): void {
    if (this.content.apply(change)) this.changes.fire(change);
  }

  dispose(): void {
    this.changes.dispose();
    this.onDispose();
  }
}
