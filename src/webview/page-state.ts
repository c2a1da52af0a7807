import type { PageMessage } from "../protocol/output.ts";

/** The state that outlives the page: the editor keeps it while the panel is hidden and across window reloads. */
export interface PageState {
  /** The version of this format; state of another version is discarded. */
  readonly version: 1;
  readonly taskID: string;
  /** The entries that the reader expanded. */
  readonly opened: readonly string[];
  /** An unsent follow-up. */
  readonly draft: string;
  /** Unsent replies, by request ID. */
  readonly replies: Readonly<Record<string, ReplyDraft>>;
  /** The reading position; missing while the view follows the end. */
  readonly reading?: { readonly entryID: string; readonly segment: number; readonly top: number } | undefined;
}

/** The user's input for a request: the rejection message, or for each question the options and a custom answer. */
export interface ReplyDraft {
  readonly message?: string;
  readonly answers?: readonly {
    readonly chosen: readonly string[];
    readonly own: string;
    /** Whether the custom answer is selected, and not just typed. */
    readonly takesOwn: boolean;
  }[];
}

/** The part of the editor's webview API that the page uses. */
export interface EditorApi {
  postMessage(message: PageMessage): void;
  getState(): unknown;
  setState(state: PageState): void;
}

/** Holds the state; writes to the editor are throttled. */
export class PageStateStore {
  private state: PageState;
  private timer: number | undefined;

  constructor(
    private readonly api: EditorApi,
    taskID: string,
  ) {
    this.state = stateOf(taskID, api.getState());
    api.setState(this.state);
  }

  get current(): PageState {
    return this.state;
  }

  update(change: Partial<Omit<PageState, "version" | "taskID">>): void {
    this.state = { ...this.state, ...change };
    this.timer ??= window.setTimeout(() => this.write(), WRITE_DELAY_MS);
  }

  /** Writes immediately. */
  write(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.api.setState(this.state);
  }
}

/** The state of a page of this task; an empty one if the editor kept none. */
export function stateOf(taskID: string, state: unknown): PageState {
  const kept = state as Partial<PageState> | undefined;
  return kept?.version === 1 && kept.taskID === taskID
    ? (kept as PageState)
    : { version: 1, taskID, opened: [], draft: "", replies: {} };
}

const WRITE_DELAY_MS = 150;
