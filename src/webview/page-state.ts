/** What outlives the page: the editor keeps it while the panel is hidden and across reloads of the window. */
export interface PageState {
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
    this.state = { opened: [], draft: "", replies: {}, ...stored(api.getState(), taskID), taskID };
    api.setState(this.state);
  }

  get current(): PageState {
    return this.state;
  }

  update(change: Partial<Omit<PageState, "taskID">>): void {
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

/** The editor hands back what this page, or an earlier version of it, stored. */
function stored(value: unknown, taskID: string): Partial<PageState> {
  if (typeof value !== "object" || value === null) return {};
  const state = value as Partial<Record<keyof PageState, unknown>>;
  if (state.taskID !== taskID) return {};
  const { opened, draft, replies, reading } = state;
  return {
    ...(Array.isArray(opened) ? { opened: opened.filter((id) => typeof id === "string") } : {}),
    ...(typeof draft === "string" ? { draft } : {}),
    ...(isRecord(replies) ? { replies: drafts(replies) } : {}),
    ...(isReading(reading) ? { reading } : {}),
  };
}

function drafts(replies: Readonly<Record<string, unknown>>): Record<string, ReplyDraft> {
  return Object.fromEntries(
    Object.entries(replies).flatMap(([id, value]) => (isDraft(value) ? [[id, value] as const] : [])),
  );
}

function isDraft(value: unknown): value is ReplyDraft {
  if (!isRecord(value)) return false;
  const { message = "", answers = [] } = value;
  return (
    typeof message === "string" &&
    Array.isArray(answers) &&
    answers.every(
      (answer) => isRecord(answer) && Array.isArray(answer["chosen"]) && typeof answer["own"] === "string",
    )
  );
}

function isReading(value: unknown): value is NonNullable<PageState["reading"]> {
  if (!isRecord(value)) return false;
  const { entryID, segment, top } = value;
  return typeof entryID === "string" && typeof segment === "number" && typeof top === "number";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
