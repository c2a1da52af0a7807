import {
  MAX_ANSWER,
  MAX_MESSAGE,
  PANEL_COMMANDS,
  SENDING,
  type PanelMessage,
  type RequestAnswer,
} from "./output.ts";

type Check = (value: unknown) => boolean;

const MAX_ID = 200;
const MAX_URL = 8_000;
const MAX_PATH = 4_000;
export const MAX_QUERY = 1_000;
/** Limits both the questions of a request and the answers to one question. */
const MAX_ANSWERS = 100;

const text =
  (max: number): Check =>
  (value) =>
    typeof value === "string" && value.length <= max;

const id: Check = (value) => typeof value === "string" && value !== "" && value.length <= MAX_ID;

const list =
  (each: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length <= MAX_ANSWERS && value.every(each);

const oneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === "string" && values.includes(value);

const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

/** The fields of each kind of reply besides its type. */
const REPLIES: { readonly [T in RequestAnswer["type"]]: Fields<Extract<RequestAnswer, { type: T }>> } = {
  permission: { reply: oneOf("once", "always", "reject"), message: optional(text(MAX_ANSWER)) },
  question: { answers: list(list(text(MAX_ANSWER))) },
  dismiss: {},
};

const reply: Check = (value) => fits(value, REPLIES);

/** The fields of each message besides its type. */
const FIELDS: { readonly [T in PanelMessage["type"]]: Fields<Extract<PanelMessage, { type: T }>> } = {
  ready: {},
  earlier: { before: id },
  "tool-detail": { id },
  "open-field": { id, field: text(MAX_ID) },
  "open-diff": { id },
  "open-path": { path: text(MAX_PATH) },
  image: { path: text(MAX_PATH) },
  "open-link": { url: text(MAX_URL) },
  "open-session": { id },
  "find-in-tools": { query: text(MAX_QUERY) },
  "copy-conversation": {},
  "open-transcript": {},
  "copy-result": {},
  send: { text: text(MAX_MESSAGE), how: oneOf(...SENDING) },
  withdraw: {},
  keep: {},
  "open-task": { id },
  run: { command: oneOf(...PANEL_COMMANDS) },
  reply: { id, reply },
};

type Fields<M> = { readonly [K in Exclude<keyof M, "type">]-?: Check };

/** Returns valid messages. The page isn't trusted, because it renders the output of models and tools. */
export function parsePanelMessage(value: unknown): PanelMessage | undefined {
  return fits(value, FIELDS) ? (value as PanelMessage) : undefined;
}

/** Whether the value has a known type, exactly the fields of that type, and no others. */
function fits(value: unknown, kinds: Readonly<Record<string, Readonly<Record<string, Check>>>>): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { type, ...rest } = value as Readonly<Record<string, unknown>>;
  if (typeof type !== "string" || !Object.hasOwn(kinds, type)) return false;
  const fields = kinds[type] ?? {};
  return (
    Object.keys(rest).every((name) => Object.hasOwn(fields, name)) &&
    Object.entries(fields).every(([name, check]) => check(rest[name]))
  );
}

/** Whether a link may open outside the panel. Others (`command:`, `javascript:`, `file:`, `data:`, …) stay text. */
export function isSafeLink(url: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s\p{Cc}]+$/iu.test(url);
}
