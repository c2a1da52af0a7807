import * as z from "zod/mini";

/*
 * What OpenCode's plugin sends to an endpoint: one HTTP POST per call, with the endpoint's token as bearer. The
 * response is streamed as JSON lines: empty lines keep the connection alive, the last line is the reply.
 */

export const TOOL_CALL_PATH = "/v1/tool-call";
/** Where the plugin announces that a session is about to write files. The response is a reply too. */
export const FILE_WRITE_PATH = "/v1/file-write";
/** In bytes. A prompt may have a million characters; UTF-8 and JSON escapes take several bytes for each. */
export const MAX_CALL_BYTES = 8_000_000;
/** How often an empty line is sent while a call waits, in milliseconds. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Whether another endpoint may be the right one, as that of a folder that is a worktree of another one. If the session
 * may belong to another folder, nothing is done then, and the reply is `not-ours`; if it certainly does, in any case.
 * Missing in requests of earlier versions, which know no such reply.
 */
const onlyIfOurs = z.optional(z.boolean());

export const toolCall = z.object({
  tool: z.string(),
  /** What the model sent, unchecked. */
  input: z.unknown(),
  sessionID: z.string(),
  messageID: z.string(),
  /** The agent that makes the call. Missing in calls of earlier versions of the plugin and of OpenCode 2. */
  agent: z.optional(z.string()),
  /** Stays the same when the call is repeated because its answer was lost. */
  callID: z.string(),
  /** See {@link onlyIfOurs}. */
  onlyIfOurs,
  /** How long ago the call was first made, in milliseconds. Time limits of the call include this time. */
  waitedMs: z.optional(z.number()),
  /** The agents that the user permitted the caller to launch. Missing if the caller can't ask the user. */
  permitted: z.optional(z.array(z.string())),
});
export type ToolCall = z.infer<typeof toolCall>;

export const fileWrite = z.object({
  sessionID: z.string(),
  /** Absolute paths. */
  paths: z.array(z.string()),
  /** See {@link onlyIfOurs}. */
  onlyIfOurs,
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
  /** The call can be repeated once the user has permitted the caller to launch this agent. */
  z.object({ type: z.literal("ask"), agent: z.string(), message: z.string() }),
  /** See {@link onlyIfOurs}. */
  z.object({ type: z.literal("not-ours") }),
]);
export type ToolReply = z.infer<typeof toolReply>;
/** The reply of the folder that the session belongs to. */
export type ToolAnswer = Exclude<ToolReply, { readonly type: "not-ours" }>;
