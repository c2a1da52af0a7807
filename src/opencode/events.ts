import * as z from "zod/mini";
import type { Logger } from "../engine/ports.ts";
import type { ServerEvent } from "../engine/server-model.ts";
import {
  toAgentError,
  toMessageInfo,
  toPart,
  toPermissionRequest,
  toQuestionRequest,
  toSession,
} from "./mapping.ts";
import { Misfit, fit, sessionStatus } from "./schemas.ts";

type Fields = Readonly<Record<string, unknown>>;
type Decode = (properties: Fields) => ServerEvent | undefined;

/** Turns one payload of the server's event stream into what the engine knows; undefined if it is none of its business. */
export type EventDecoder = (payload: unknown) => ServerEvent | undefined;

/** The server's events are many (one per streamed word), so the type is looked at first and alone. */
export function createEventDecoder(logger: Logger): EventDecoder {
  const misfitTypes = new Set<string>();

  return (payload) => {
    if (typeof payload !== "object" || payload === null) return undefined;
    const { type, properties } = payload as { type?: unknown; properties?: unknown };
    if (typeof type !== "string" || typeof properties !== "object" || properties === null) return undefined;
    if (type === "session.error" && (properties as Fields).sessionID === undefined) {
      logger.warn(
        `OpenCode reports an error outside any session: ${JSON.stringify(properties).slice(0, 500)}`,
      );
      return undefined;
    }
    try {
      return type === "message.part.delta"
        ? decodeDelta(properties as Fields)
        : DECODERS.get(type)?.(properties as Fields);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      if (!misfitTypes.has(type)) {
        misfitTypes.add(type);
        logger.warn(`Events of type ${type} that do not fit are ignored: ${error.message}.`);
      }
      return undefined;
    }
  };
}

/** Checked by hand: a model's answer is thousands of these. */
function decodeDelta({ sessionID, messageID, partID, field, delta }: Fields): ServerEvent {
  if (
    typeof sessionID !== "string" ||
    typeof messageID !== "string" ||
    typeof partID !== "string" ||
    typeof field !== "string" ||
    typeof delta !== "string"
  )
    throw new Misfit("a field is not of type string");
  return { type: "part-delta", sessionID, messageID, partID, field, delta };
}

const inSession = z.object({ sessionID: z.string() });
const inMessage = z.object({ sessionID: z.string(), messageID: z.string() });
const inPart = z.object({ sessionID: z.string(), messageID: z.string(), partID: z.string() });
const closedRequest = z.object({ sessionID: z.string(), requestID: z.string() });

const decodeSession: Decode = ({ info }) => ({ type: "session-changed", session: toSession(info, "info") });
const decodeClosedRequest: Decode = (properties) => ({
  type: "request-closed",
  ...fit(closedRequest, properties),
});

const DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ["session.created", decodeSession],
  ["session.updated", decodeSession],
  ["session.deleted", (properties) => ({ type: "session-deleted", ...fit(inSession, properties) })],
  [
    "session.status",
    (properties) => ({
      type: "session-status",
      ...fit(inSession, properties),
      status: fit(sessionStatus, properties.status, "status"),
    }),
  ],
  [
    "session.idle",
    (properties) => ({ type: "session-status", ...fit(inSession, properties), status: { type: "idle" } }),
  ],
  [
    "session.error",
    (properties) => ({
      type: "session-error",
      ...fit(inSession, properties),
      error: toAgentError(properties.error, "error"),
    }),
  ],
  ["message.updated", ({ info }) => ({ type: "message-changed", info: toMessageInfo(info, "info") })],
  ["message.removed", (properties) => ({ type: "message-removed", ...fit(inMessage, properties) })],
  ["message.part.updated", ({ part }) => ({ type: "part-changed", part: toPart(part, "part") })],
  ["message.part.removed", (properties) => ({ type: "part-removed", ...fit(inPart, properties) })],
  ["permission.asked", (properties) => ({ type: "request-asked", request: toPermissionRequest(properties) })],
  ["question.asked", (properties) => ({ type: "request-asked", request: toQuestionRequest(properties) })],
  ["permission.replied", decodeClosedRequest],
  ["question.replied", decodeClosedRequest],
  ["question.rejected", decodeClosedRequest],
  ["server.heartbeat", () => ({ type: "heartbeat" })],
]);
