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
  request(method: Method, request: ServerRequest, signal: AbortSignal): Promise<ServerAnswer>;
}

/** Creates a client whose calls all refer to one folder. */
export function createClient(access: ServerAccess, directory: string): ServerClient {
  const client = createSdkClient({
    baseUrl: access.url,
    headers: { ...authorizationHeader(access), "x-opencode-directory": encodeURIComponent(directory) },
    // A redirect could send the password to another server.
    redirect: "error",
  });
  // The header selects the folder, but only the parameter excludes sessions of other folders from lists. The server
  // decodes the parameter twice.
  const inFolder = (request: ServerRequest): ServerRequest => ({
    ...request,
    query: { ...request.query, directory: directory.replaceAll("%", "%25") },
  });
  return {
    request: (method, request, signal) =>
      client.request({
        ...(method === "GET" ? inFolder(request) : request),
        method,
        signal,
        fetch: (async (sent: Request) => endingWith(signal, await fetch(sent))) as typeof fetch,
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
