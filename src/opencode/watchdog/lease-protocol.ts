import * as z from "zod/mini";
import { isText, type Text } from "../../engine/sentence.ts";

/*
 * What a watchdog and the extension hosts that use its server tell each other: one JSON object per line. The
 * connection itself is the lease. Passwords do not travel here: a named pipe may have other readers, and may be another
 * program's from the start. They are in the state file.
 */

const text = z.custom<Text>(isText);

const serverFault = z.object({
  code: z.enum(["start-failed", "start-timeout", "gave-up"]),
  message: text,
  remedy: text,
});

/** Why a watchdog has no server. */
export type ServerFault = z.infer<typeof serverFault>;

const watchdogMessage = z.discriminatedUnion("type", [
  /** The server is being started, for the first time or after a crash: nothing may be sent to its old address. */
  z.object({ type: z.literal("starting"), reason: z.optional(z.string()) }),
  /** The server runs. The state file says how to reach it, if it is about the same run. */
  z.object({ type: z.literal("ready"), run: z.string() }),
  /** It does not run and will not be started again. */
  z.object({ type: z.literal("failed"), failure: serverFault }),
  /** Somebody asked for its end. */
  z.object({ type: z.literal("stopping") }),
]);
export type WatchdogMessage = z.infer<typeof watchdogMessage>;

const hostMessage = z.discriminatedUnion("type", [
  /** Say again how things are. */
  z.object({ type: z.literal("ask") }),
  /** End the server, whoever else uses it. */
  z.object({ type: z.literal("stop") }),
  /** This host does not come back: end the server if nobody else uses it. */
  z.object({ type: z.literal("done") }),
]);
export type HostMessage = z.infer<typeof hostMessage>;

/** What the watchdog is started with, as JSON on its standard input. */
export const watchdogConfig = z.object({
  /** Real path of the folder that the server works in. */
  directory: z.string(),
  /** OpenCode's. */
  executable: z.string(),
  files: z.object({ state: z.string(), lock: z.string(), log: z.string(), socket: z.string() }),
  startTimeoutMs: z.number(),
  /** How long the server outlives the last lease. */
  graceMs: z.number(),
});
export type WatchdogConfig = z.infer<typeof watchdogConfig>;

/** What a watchdog writes to its standard output once leases can be taken. */
export const LISTENING = "listening";
/** The exit code of a watchdog that found another one serving the folder. */
export const EXIT_ALREADY_SERVED = 3;

/** Far more than any message takes: whoever sends more is not one of us. */
const MAX_LINE_CHARS = 100_000;

export function encodeMessage(message: WatchdogMessage | HostMessage): string {
  return `${JSON.stringify(message)}\n`;
}

export const readWatchdogMessages = (onMessage: (message: WatchdogMessage) => void) =>
  lineReader(watchdogMessage, onMessage);
export const readHostMessages = (onMessage: (message: HostMessage) => void) =>
  lineReader(hostMessage, onMessage);

/** Takes text as it arrives and tells each whole message. Lines that are none are passed over: newer versions may say more. */
function lineReader<T extends z.ZodMiniType>(
  schema: T,
  onMessage: (message: z.output<T>) => void,
): (text: string) => void {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE_CHARS);
    for (const line of lines) {
      const parsed = z.safeParse(schema, parseJson(line));
      if (parsed.success) onMessage(parsed.data);
    }
  };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
