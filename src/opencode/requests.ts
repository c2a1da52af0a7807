import type * as api from "@opencode-ai/sdk/v2/types";
import { ServerFailure, type NewSession } from "../engine/ports.ts";
import type { Prompt, PromptFile, PromptPart } from "../engine/server-model.ts";
import type { ModelRef, TaskRecord, TaskRecordDraft } from "../engine/task.ts";
import type { ServerRequest } from "./client.ts";
import type { ReplayEvent } from "./history.ts";
import { encodeRecord, RECORD_KEY } from "./record-codec.ts";

/* Requests and their bodies, made from the engine's types. */

/** The same request for another directory than the folder. */
export function inDirectory(request: ServerRequest, directory: string | undefined): ServerRequest {
  return directory === undefined ? request : { ...request, directory };
}

export function newSessionBody(
  name: string,
  {
    title,
    parentID,
    agent,
    model,
    permission,
    task,
  }: Omit<NewSession, "task"> & {
    readonly task?: TaskRecord | TaskRecordDraft | undefined;
  },
) {
  return {
    title,
    ...(parentID !== undefined && { parentID }),
    ...(agent !== undefined && { agent }),
    ...(model && { model: sessionModel(model) }),
    ...(permission && { permission: [...permission] }),
    ...(task && { metadata: { [RECORD_KEY]: encoded(name, task) } }),
  };
}

export function messagesRequest(sessionID: string, limit?: number) {
  return {
    url: "/session/{sessionID}/message",
    path: { sessionID },
    query: { ...(limit !== undefined && { limit }) },
  } satisfies api.SessionMessagesData;
}

export function replayRequest(directory: string, events: readonly ReplayEvent[]) {
  return { url: "/sync/replay", body: { directory, events: [...events] } } satisfies api.SyncReplayData;
}

function sessionModel({ providerID, modelID, variant }: ModelRef) {
  return { providerID, id: modelID, ...(variant !== undefined && { variant }) };
}

export function promptBody({ messageID, agent, model, parts, files = [], noReply }: Prompt) {
  return {
    messageID,
    agent,
    ...(model && promptModel(model)),
    ...(noReply !== undefined && { noReply }),
    // Parts are stored in this order, but returned by ID. The text comes last: once it is stored, so are the files.
    parts: [...files.map(promptFile), ...parts.map(promptPart)],
  };
}

function promptPart({ id, text, synthetic, metadata }: PromptPart) {
  return {
    type: "text" as const,
    text,
    ...(id !== undefined && { id }),
    ...(synthetic !== undefined && { synthetic }),
    ...(metadata && { metadata: { ...metadata } }),
  };
}

function promptFile({ url, mime, filename }: PromptFile) {
  return { type: "file" as const, url, mime, ...(filename !== undefined && { filename }) };
}

function promptModel({ providerID, modelID, variant }: ModelRef) {
  return { model: { providerID, modelID }, ...(variant !== undefined && { variant }) };
}

export function encoded(name: string, record: TaskRecord | TaskRecordDraft): Record<string, unknown> {
  try {
    return encodeRecord(record);
  } catch (error) {
    if (error instanceof RangeError) throw new ServerFailure(name, "refused", error.message);
    throw error;
  }
}
