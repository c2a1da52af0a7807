/** What outlives the page: the editor keeps it while the panel is hidden and across reloads of the window. */
export interface PageState {
  readonly taskID: string;
  /** Entries that the reader opened. */
  readonly opened: readonly string[];
  /** A follow-up prompt not sent yet. */
  readonly draft: string;
  /** Missing while the view follows the end. */
  readonly reading?: { readonly entryID: string; readonly segment: number; readonly top: number } | undefined;
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
    this.state = { opened: [], draft: "", ...stored(api.getState(), taskID), taskID };
    api.setState(this.state);
  }

  get current(): PageState {
    return this.state;
  }

  update(change: Partial<Omit<PageState, "taskID">>): void {
    this.state = { ...this.state, ...change };
    this.timer ??= window.setTimeout(() => {
      this.timer = undefined;
      this.api.setState(this.state);
    }, WRITE_DELAY_MS);
  }
}

const WRITE_DELAY_MS = 150;

/** The editor hands back what this page, or an earlier version of it, stored. */
function stored(value: unknown, taskID: string): Partial<PageState> {
  if (typeof value !== "object" || value === null) return {};
  const state = value as Partial<Record<keyof PageState, unknown>>;
  if (state.taskID !== taskID) return {};
  const { opened, draft, reading } = state;
  return {
    ...(Array.isArray(opened) ? { opened: opened.filter((id) => typeof id === "string") } : {}),
    ...(typeof draft === "string" ? { draft } : {}),
    ...(isReading(reading) ? { reading } : {}),
  };
}

function isReading(value: unknown): value is NonNullable<PageState["reading"]> {
  if (typeof value !== "object" || value === null) return false;
  const { entryID, segment, top } = value as Record<string, unknown>;
  return typeof entryID === "string" && typeof segment === "number" && typeof top === "number";
}
