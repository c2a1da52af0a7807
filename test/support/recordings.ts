import { readFileSync } from "node:fs";
import type { Logger } from "../../src/engine/ports.ts";
import { sessionOf, type ServerEvent, type UserMessageInfo } from "../../src/engine/server-model.ts";
import { createEventDecoder } from "../../src/opencode/events.ts";

/** The events of a real server for one turn of a session, from one prompt to the next. */
export interface RecordedTurn {
  readonly recording: string;
  readonly sessionID: string;
  /** The title with which the session was created; it says what was tested. */
  readonly title: string;
  /** The number of the turn in its session, from 1. */
  readonly number: number;
  readonly prompt: UserMessageInfo;
  /** The earlier events of the session. */
  readonly before: readonly ServerEvent[];
  readonly events: readonly ServerEvent[];
}

const strictLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message) => {
    throw new Error(message);
  },
  error: (message) => {
    throw new Error(message);
  },
};

/** The turns in a recording, which is a file of event payloads, one per line, as sent by OpenCode 1.18.33. */
export function recordedTurns(recording: string): readonly RecordedTurn[] {
  const text = readFileSync(new URL(`./recordings/${recording}.jsonl`, import.meta.url), "utf8");
  const decode = createEventDecoder(strictLogger, "/work");
  const events = text
    .trim()
    .split("\n")
    .flatMap((line) => decode(JSON.parse(line)) ?? [])
    .filter((event) => event.type !== "heartbeat");
  const sessionIDs = new Set(events.map(sessionOf));
  return [...sessionIDs].flatMap((sessionID) =>
    turnsOf(
      recording,
      sessionID,
      events.filter((event) => sessionOf(event) === sessionID),
    ),
  );
}

function turnsOf(recording: string, sessionID: string, events: readonly ServerEvent[]): RecordedTurn[] {
  const created = events.find((event) => event.type === "session-changed");
  const title = created?.session.title ?? "";
  const starts = promptsToIdle(events);
  return starts.map(({ at, prompt }, index) => ({
    recording,
    sessionID,
    title,
    number: index + 1,
    prompt,
    before: events.slice(0, at),
    events: events.slice(at, starts[index + 1]?.at),
  }));
}

/** The prompts to idle sessions; a prompt to a busy session joins the running turn. */
function promptsToIdle(events: readonly ServerEvent[]): { at: number; prompt: UserMessageInfo }[] {
  const starts: { at: number; prompt: UserMessageInfo }[] = [];
  const known = new Set<string>();
  let works = false;
  for (const [at, event] of events.entries()) {
    if (event.type === "session-status") works = event.status.type !== "idle";
    if (event.type !== "message-changed" || event.info.role !== "user" || known.has(event.info.id)) continue;
    known.add(event.info.id);
    if (!works) starts.push({ at, prompt: event.info });
  }
  return starts;
}
