/** What outlives the page: the editor keeps it while the panel is hidden and across reloads of the window. */
export interface PageState {
  /** Of the form of what is kept: what a page of another version left is not used. */
  readonly version: 1;
  readonly taskID: string;
  /** Entries that the reader opened. */
  readonly opened: readonly string[];
  /** A follow-up prompt not sent yet. */
  readonly draft: string;
  /** Replies to requests not sent yet, by the request's ID. */
  readonly replies: Readonly<Record<string, ReplyDraft>>;
  /** Missing while the view follows the end. */
  readonly reading?: { readonly entryID: string; readonly segment: number; readonly top: number } | undefined;
}

/** What was typed and chosen for a request: the message of a rejection, or for each question the options and an own answer. */
export interface ReplyDraft {
  readonly message?: string;
  readonly answers?: readonly { readonly chosen: readonly string[]; readonly own: string }[];
}

/** The part of the editor's webview API that the page uses. */
export interface EditorApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: PageState): void;
}

/** Keeps the state, written at most every so often. */
export class PageStateStore {
  private state: PageState;
  private timer: number | undefined;

  constructor(
    private readonly api: EditorApi,
    taskID: string,
  ) {
    const kept = api.getState() as Partial<PageState> | undefined;
    this.state =
      kept?.version === 1 && kept.taskID === taskID
        ? (kept as PageState)
        : { version: 1, taskID, opened: [], draft: "", replies: {} };
    api.setState(this.state);
  }

  get current(): PageState {
    return this.state;
  }

  update(change: Partial<Omit<PageState, "version" | "taskID">>): void {
    this.state = { ...this.state, ...change };
    this.timer ??= window.setTimeout(() => this.write(), WRITE_DELAY_MS);
  }

  /** At once. */
  write(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.api.setState(this.state);
  }
}

const WRITE_DELAY_MS = 150;
