import { createClient as createSdkClient } from "@opencode-ai/sdk/v2/gen/client";
import { authorizationHeader } from "./access.ts";
import type { ServerAccess } from "./access.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** A request as the SDK's route types write it: `path` fills the places in `url`. */
export interface ServerRequest {
  readonly url: string;
  readonly path?: Record<string, string>;
  readonly query?: Record<string, unknown>;
  readonly body?: unknown;
}

export interface ServerAnswer {
  readonly data?: unknown;
  readonly error?: unknown;
  /** Undefined: there was no network. */
  readonly response?: Response | undefined;
}

/**
 * The SDK's client without its class of all methods, which is half as large as everything else of this product: calls
 * are written as the route types that the SDK generates (`{ url: "/session/{sessionID}", … } satisfies SessionGetData`).
 */
export interface ServerClient {
  request(method: Method, request: ServerRequest, signal: AbortSignal): Promise<ServerAnswer>;
}

/** A client whose calls all concern one folder. */
export function createClient(access: ServerAccess, directory: string): ServerClient {
  const client = createSdkClient({
    baseUrl: access.url,
    headers: { ...authorizationHeader(access), "x-opencode-directory": encodeURIComponent(directory) },
    // The password is for this server alone.
    redirect: "error",
  });
  // The header chooses the folder, but only the parameter keeps the sessions of others out of the list. The server
  // decodes it twice.
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

/** Node's `fetch` can forget its signal once the head of the answer is there: the body would keep its connection. */
export function endingWith(signal: AbortSignal, response: Response): Response {
  if (!response.body) return response;
  const { status, statusText, headers } = response;
  const body = response.body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal });
  return new Response(body, { status, statusText, headers });
}
