import { createClient as createSdkClient } from "@opencode-ai/sdk/v2/gen/client";
import type { Client } from "@opencode-ai/sdk/v2/gen/client";
import { authorizationHeader } from "./access.ts";
import type { ServerAccess } from "./access.ts";

/**
 * The SDK's client without its class of all methods, which is half as large as everything else of this product: calls
 * are written as the route types that the SDK generates (`{ url: "/session/{sessionID}", … } satisfies SessionGetData`).
 */
export type ServerClient = Client;

/** A client whose calls all concern one folder. `fetch` replaces the global one. */
export function createClient(
  access: ServerAccess,
  directory: string,
  fetch?: (request: Request) => Promise<Response>,
): ServerClient {
  const client = createSdkClient({
    baseUrl: access.url,
    headers: { ...authorizationHeader(access), "x-opencode-directory": encodeURIComponent(directory) },
    // The password is for this server alone.
    redirect: "error",
    ...(fetch && { fetch: fetch as typeof globalThis.fetch }),
  });
  // The header chooses the folder, but only the parameter keeps the sessions of others out of the list.
  client.interceptors.request.use((request) => {
    if (request.method !== "GET") return request;
    const url = new URL(request.url);
    // The server decodes this parameter twice.
    url.searchParams.set("directory", directory.replaceAll("%", "%25"));
    return new Request(url, request);
  });
  return client;
}
