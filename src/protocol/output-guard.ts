import type { PanelMessage } from "./output.ts";

type Check = (value: unknown) => boolean;

const MAX_ID = 200;
const MAX_URL = 8_000;
const MAX_PROMPT = 1_000_000;

const text =
  (max: number): Check =>
  (value) =>
    typeof value === "string" && value.length <= max;

const id: Check = (value) => typeof value === "string" && value !== "" && value.length <= MAX_ID;

/** The fields of each message besides its type. */
const FIELDS: { readonly [T in PanelMessage["type"]]: Fields<Extract<PanelMessage, { type: T }>> } = {
  ready: {},
  reload: {},
  earlier: { before: id },
  "tool-detail": { id },
  "open-tool-text": { id, field: text(MAX_ID) },
  "open-tool-file": { id, field: text(MAX_ID) },
  "open-link": { url: text(MAX_URL) },
  "open-transcript": {},
  "copy-result": {},
  cancel: {},
  resume: { prompt: text(MAX_PROMPT) },
  fork: {},
  retry: {},
  answer: {},
  connect: {},
};

type Fields<M> = { readonly [K in Exclude<keyof M, "type">]: Check };

/** What came from the page, if it is a message of ours; the page shows what models and tools wrote, so it is not trusted. */
export function parsePanelMessage(value: unknown): PanelMessage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const message = value as Readonly<Record<string, unknown>>;
  const { type } = message;
  if (typeof type !== "string" || !Object.hasOwn(FIELDS, type)) return undefined;
  const fields: Readonly<Record<string, Check>> = FIELDS[type as PanelMessage["type"]];
  const names = Object.keys(fields);
  if (Object.keys(message).length !== names.length + 1) return undefined;
  if (!names.every((name) => fields[name]?.(message[name]))) return undefined;
  return message as unknown as PanelMessage;
}

/** Addresses that may leave the panel. Everything else (`command:`, `javascript:`, `file:`, `data:`, …) stays text. */
export function isSafeLink(url: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s\p{Cc}]+$/iu.test(url);
}
