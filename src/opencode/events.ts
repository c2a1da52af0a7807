import * as z from "zod/mini";
import type { Logger } from "../engine/ports.ts";
import type { PendingRequest, ServerEvent } from "../engine/server-model.ts";
import { fileUse } from "./file-tools.ts";
import {
  agentError,
  messageInfo,
  part,
  permissionRequest,
  questionRequest,
  session,
  sessionStatus,
} from "./schemas.ts";
import { parse, ValidationError } from "./validation.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Converts a payload of the server's event stream. Undefined if the engine does not need it.
 * @param from the directory where it happened. Defaults to the folder.
 */
export type EventDecoder = (payload: unknown, from?: string) => ServerEvent | undefined;

/**
 * Creates a decoder. Events are frequent (one per streamed word), so their type is checked before anything else.
 * @param directory the folder of the events, as the server writes it
 */
export function createEventDecoder(logger: Logger, directory: string): EventDecoder {
  const invalidTypes = new Set<string>();

  return (payload, from = directory) => {
    if (typeof payload !== "object" || payload === null) return undefined;
    const { type, properties } = payload as { type?: unknown; properties?: unknown };
    if (typeof type !== "string" || typeof properties !== "object" || properties === null) return undefined;
    if (type === "session.error" && (properties as Fields).sessionID === undefined) {
      logger.warn(
        `OpenCode reported an error outside any session: ${JSON.stringify(properties).slice(0, 500)}`,
      );
      return undefined;
    }
    try {
      if (type === "message.part.delta") return decodeDelta(properties as Fields);
      const known = EVENTS.get(type);
      return known && withFiles(parse(known, properties), from);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      if (!invalidTypes.has(type)) {
        invalidTypes.add(type);
        logger.warn(`Ignoring invalid events of type ${type}: ${error.message}.`);
      }
      return undefined;
    }
  };
}

function withFiles(event: ServerEvent, directory: string): ServerEvent {
  if (event.type !== "part-changed" || event.part.type !== "tool") return event;
  const { part } = event;
  const files = fileUse(part.tool, part.state, directory);
  return files ? { ...event, part: { ...part, files } } : event;
}

/** Checked without a schema, because an answer has thousands of deltas. */
function decodeDelta({ sessionID, messageID, partID, field, delta }: Fields): ServerEvent {
  if (
    typeof sessionID !== "string" ||
    typeof messageID !== "string" ||
    typeof partID !== "string" ||
    typeof field !== "string" ||
    typeof delta !== "string"
  )
    throw new ValidationError("a field is not of type string");
  return { type: "part-delta", sessionID, messageID, partID, field, delta };
}

const inSession = { sessionID: z.string() };
const inMessage = { ...inSession, messageID: z.string() };

/** A schema that reads these properties of an event and converts them. */
function event<T extends z.core.$ZodLooseShape>(
  fields: T,
  toEvent: (properties: z.output<z.ZodMiniObject<T>>) => ServerEvent,
): z.ZodMiniType<ServerEvent> {
  return z.pipe(z.object(fields), z.transform(toEvent));
}

const sessionChanged = event({ info: session }, ({ info }) => ({ type: "session-changed", session: info }));
const requestClosed = event({ ...inSession, requestID: z.string() }, (closed) => ({
  type: "request-closed",
  ...closed,
}));

const EVENTS: ReadonlyMap<string, z.ZodMiniType<ServerEvent>> = new Map([
  ["session.created", sessionChanged],
  ["session.updated", sessionChanged],
  ["session.deleted", event(inSession, (deleted) => ({ type: "session-deleted", ...deleted }))],
  [
    "session.status",
    event({ ...inSession, status: sessionStatus }, (changed) => ({ type: "session-status", ...changed })),
  ],
  [
    "session.idle",
    event(inSession, (idle) => ({ type: "session-status", ...idle, status: { type: "idle" } })),
  ],
  [
    "session.error",
    event({ ...inSession, error: agentError }, (failed) => ({ type: "session-error", ...failed })),
  ],
  ["message.updated", event({ info: messageInfo }, ({ info }) => ({ type: "message-changed", info }))],
  ["message.removed", event(inMessage, (removed) => ({ type: "message-removed", ...removed }))],
  ["message.part.updated", event({ part }, ({ part }) => ({ type: "part-changed", part }))],
  [
    "message.part.removed",
    event({ ...inMessage, partID: z.string() }, (removed) => ({ type: "part-removed", ...removed })),
  ],
  ["permission.asked", asked(permissionRequest)],
  ["question.asked", asked(questionRequest)],
  ["permission.replied", requestClosed],
  ["question.replied", requestClosed],
  ["question.rejected", requestClosed],
  ["server.heartbeat", event({}, () => ({ type: "heartbeat" }))],
]);

function asked(request: z.ZodMiniType<PendingRequest>): z.ZodMiniType<ServerEvent> {
  return z.pipe(
    request,
    z.transform((request): ServerEvent => ({ type: "request-asked", request })),
  );
}
