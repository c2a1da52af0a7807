import { Refusal } from "../../engine/errors.ts";
import type { Disposable } from "../../engine/event.ts";
import type { Clock, Logger } from "../../engine/ports.ts";
import { ReadModel } from "../../engine/read-model.ts";
import { sentence } from "../../engine/sentence.ts";
import type {
  Conversation,
  ConversationOpener,
  FolderCalls,
  FolderClient,
  FolderSettings,
} from "../../rpc/contract.ts";

/** This window's copy of a folder's state, and its calls to the daemon for that folder. */
export class FolderMirror implements Disposable {
  readonly known: ReadModel;
  private client: FolderClient | undefined;
  private opening: Promise<FolderClient> | undefined;
  private isDisposed = false;

  constructor(
    private readonly openClient: () => Promise<FolderClient>,
    clock: Clock,
    logger: Logger,
  ) {
    this.known = new ReadModel(clock, logger);
  }

  /** Opens the folder at the daemon; repeated calls do nothing. Untrusted folders must not be opened. */
  async open(): Promise<FolderCalls> {
    this.opening ??= this.join().catch((error: unknown) => {
      this.opening = undefined;
      throw error;
    });
    return (await this.opening).calls;
  }

  /** Throws a {@link Refusal} if the folder isn't open. */
  get calls(): FolderCalls {
    return this.opened.calls;
  }

  /** Throws a {@link Refusal} if the folder isn't open. */
  async openConversation(...args: Parameters<ConversationOpener>): Promise<Conversation> {
    return this.opened.openConversation(...args);
  }

  /** A folder that isn't open yet gets its settings when it is opened. */
  configure(settings: FolderSettings): void {
    this.client?.configure(settings);
  }

  dispose(): void {
    this.isDisposed = true;
    this.client?.dispose();
    this.known.dispose();
  }

  private get opened(): FolderClient {
    if (this.client) return this.client;
    throw new Refusal("unavailable", sentence("This folder isn't connected yet. Connect first."));
  }

  private async join(): Promise<FolderClient> {
    const client = await this.openClient();
    if (this.isDisposed) client.dispose();
    else client.onDidChange((changes) => this.known.apply(changes));
    this.client = client;
    return client;
  }
}
