import * as z from "zod/mini";

/*
 * What OpenCode's plugin asks of an endpoint: one HTTP POST per call, with the endpoint's token as bearer. The answer is
 * streamed as JSON lines: empty ones keep the connection alive, the last one is the reply.
 */

export const TOOL_CALL_PATH = "/v1/tool-call";
/** Where it says that a session is about to write files, which is answered by a reply, too. */
export const FILE_WRITE_PATH = "/v1/file-write";
/** Bytes of a call: a prompt may have a million characters, which UTF-8 and JSON can make several times as many. */
export const MAX_CALL_BYTES = 8_000_000;
/** How often a line is sent while a call waits, in milliseconds. */
export const KEEP_ALIVE_MS = 15_000;

export const toolCall = z.object({
  tool: z.string(),
  /** What the model sent, unchecked. */
  input: z.unknown(),
  sessionID: z.string(),
  messageID: z.string(),
  /** The same when the call is made again because its answer was lost. */
  callID: z.string(),
  /** How long ago the call was first made, in milliseconds: what was waited counts. */
  waitedMs: z.optional(z.number()),
  /** The agents that the user let the caller launch. Missing: whoever calls can't ask the user. */
  permitted: z.optional(z.array(z.string())),
});
export type ToolCall = z.infer<typeof toolCall>;

export const fileWrite = z.object({
  sessionID: z.string(),
  /** Absolute ones. */
  paths: z.array(z.string()),
});
export type FileWrite = z.infer<typeof fileWrite>;

export const toolReply = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("result"),
    title: z.string(),
    text: z.string(),
    metadata: z.optional(z.record(z.string(), z.unknown())),
  }),
  /** `message` is one clear sentence for the model. */
  z.object({ type: z.literal("refused"), message: z.string() }),
  /** The call can be made again once the user let the caller launch this agent. */
  z.object({ type: z.literal("ask"), agent: z.string(), message: z.string() }),
]);
export type ToolReply = z.infer<typeof toolReply>;
