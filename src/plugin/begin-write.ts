import { realpath } from "node:fs/promises";
import { readLivingEntries } from "../bridge/endpoint-entries.ts";
import { FILE_WRITE_PATH, type FileWrite } from "../bridge/tool-call.ts";
import { limited } from "../opencode/cancel.ts";
import { callEndpoint } from "./call-endpoint.ts";
import { askEach, folderEndpoints, isReachable } from "./folder-endpoints.ts";

export interface WritePlace {
  readonly stateFolder: string;
  /** The session's folder. */
  readonly directory: string;
  /** The OpenCode server of the session. */
  readonly server: URL;
  /** How long to wait for an answer, in milliseconds. */
  readonly patienceMs: number;
}

/**
 * Announces to the daemon that a session is about to write files. Resolves to why it must not, as one sentence for the
 * model. Undefined if it may, or if there is no answer in time.
 */
export async function beginWrite(
  write: FileWrite,
  { stateFolder, directory, server, patienceMs }: WritePlace,
): Promise<string | undefined> {
  if (!isReachable(server)) return undefined;
  const ask = async (signal: AbortSignal): Promise<string | undefined> => {
    const origin = { directory: await realpath(directory), server };
    const { serving } = folderEndpoints(await readLivingEntries(stateFolder), origin);
    const outcome = await askEach(serving, origin.directory, (endpoint, onlyIfOurs) =>
      callEndpoint(
        endpoint,
        { path: FILE_WRITE_PATH, body: JSON.stringify({ ...write, onlyIfOurs }) },
        signal,
      ),
    );
    return outcome.kind === "reply" && outcome.reply.type === "refused" ? outcome.reply.message : undefined;
  };
  // A write is never held back because the daemon cannot be asked.
  return limited(patienceMs, ask).catch(() => undefined);
}
