import { createClient as createSdkClient } from "@opencode-ai/sdk/v2/gen/client";
import { authorizationHeader } from "./access.ts";
import type { ServerAccess } from "./access.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** A request in the form of the SDK's route types. `path` fills the placeholders in `url`. */
export interface ServerRequest {
  readonly url: string;
  readonly path?: Record<string, string>;
  readonly query?: Record<string, unknown>;
  readonly body?: unknown;
  /** The directory that the call refers to. Defaults to the client's folder. */
  readonly directory?: string;
}

/** A folder as the server describes it. */
export interface ServerFolder {
  /** Its path as the server writes it. */
  readonly directory: string;
  /** Whether it is in a Git repository, so that sessions can run in worktrees of it. */
  readonly isInRepository: boolean;
}

export interface ServerAnswer {
  readonly data?: unknown;
  readonly error?: unknown;
  /** Undefined if the network failed. */
  readonly response?: Response | undefined;
}

/**
 * The SDK's low-level client. Its class with all methods is left out, as it is half as large as the rest of the
 * extension. Calls are written with the SDK's route types (`{ url: "/session/{sessionID}", … } satisfies
 * SessionGetData`).
 */
export interface ServerClient {
  readonly folder: ServerFolder;
  request(method: Method, request: ServerRequest, signal: AbortSignal): Promise<ServerAnswer>;
}

/** Creates a client whose calls refer to one folder, unless they name another directory. */
export function createClient(
  access: ServerAccess,
  directory: string,
  folder: ServerFolder = { directory, isInRepository: false },
): ServerClient {
  const send = access.fetch ?? fetch;
  const client = createSdkClient({
    baseUrl: access.url,
    // The server is on this computer, where compressing its responses costs more time than it saves.
    headers: { ...authorizationHeader(access), "accept-encoding": "identity" },
    // A redirect could send the password to another server.
    redirect: "error",
  });
  // The header selects the folder, but only the parameter excludes sessions of other folders from lists. The server
  // decodes the parameter twice.
  const inFolder = (place: string, request: ServerRequest): ServerRequest => ({
    ...request,
    query: { ...request.query, directory: place.replaceAll("%", "%25") },
  });
  return {
    folder,
    request: (method, { directory: place = directory, ...request }, signal) =>
      client.request({
        ...(method === "GET" ? inFolder(place, request) : request),
        headers: { "x-opencode-directory": encodeURIComponent(place) },
        method,
        signal,
        fetch: (async (sent: Request) => endingWith(signal, await send(sent))) as typeof fetch,
      }),
  };
}

/** Aborts the body with the signal. Node's `fetch` may ignore its signal once the headers have arrived. */
export function endingWith(signal: AbortSignal, response: Response): Response {
  if (!response.body) return response;
  const { status, statusText, headers } = response;
  const body = response.body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal });
  return new Response(body, { status, statusText, headers });
}
