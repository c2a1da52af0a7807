import * as z from "zod/mini";
import { messageOf } from "../engine/errors.ts";
import { ServerFailure } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { Method, ServerAnswer, ServerClient, ServerRequest } from "./client.ts";
import { parse, ValidationError } from "./validation.ts";
import { describeServerError } from "./server-error.ts";
import { limited } from "./cancel.ts";

/** After how many milliseconds an unanswered call is given up. */
const CALL_TIMEOUT_MS = 60_000;

/** The schema of a response that doesn't matter. */
export const ignored = z.transform((): void => {});

/** The call in readable form: `POST /session/ses_1/abort`. */
export function callName(method: Method, { url, path = {} }: ServerRequest): string {
  return `${method} ${url.replace(/\{(\w+)\}/g, (place, name: string) => path[name] ?? place)}`;
}

/**
 * Makes a call and parses its response. All failures become a `ServerFailure` that names the call: an unreachable
 * server, a timeout, a refusal, or a response that does not match the schema.
 */
export async function call<T>(
  client: ServerClient,
  method: Method,
  request: ServerRequest,
  schema: z.ZodMiniType<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  const name = callName(method, request);
  const { data, error: reason, response } = await send(client, method, request, name, timeoutMs);
  if (!response.ok) throw refusal(name, response.status, reason);
  try {
    // For unknown routes the server returns its web page.
    if (response.headers.get("content-type")?.startsWith("text/html"))
      throw new ValidationError("it is a web page");
    return parse(schema, data);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const message = sentence("OpenCode returned an unexpected response to {0}: {1}.", name, error.message);
    throw new ServerFailure(name, "unexpected-answer", message, response.status);
  }
}

async function send(
  client: ServerClient,
  method: Method,
  request: ServerRequest,
  name: string,
  timeoutMs: number,
): Promise<ServerAnswer & { readonly response: Response }> {
  let answer;
  try {
    answer = await limited(timeoutMs, (signal) => client.request(method, request, signal));
  } catch (error) {
    // The network fails with TypeErrors and DOMExceptions, even in the middle of a response.
    if (error instanceof TypeError || error instanceof DOMException)
      throw unreachable(name, error, timeoutMs);
    const message = sentence(
      "Couldn't read OpenCode's response to {0}: {1}",
      name,
      describeServerError(messageOf(error)),
    );
    throw new ServerFailure(name, "unexpected-answer", message);
  }
  const { data, error, response } = answer;
  if (!response) throw unreachable(name, error, timeoutMs);
  return { data, error, response };
}

function unreachable(name: string, error: unknown, timeoutMs: number): ServerFailure {
  const timedOut = error instanceof DOMException && error.name === "TimeoutError";
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
  return new ServerFailure(
    name,
    "unreachable",
    timedOut
      ? sentence("OpenCode didn't respond to {1} within {0} s{2}.", timeoutMs / 1000, name, cause)
      : sentence("Couldn't reach OpenCode for {0}{1}.", name, cause),
  );
}

function refusal(name: string, status: number, error: unknown): ServerFailure {
  if (status === 401 || status === 403)
    return new ServerFailure(
      name,
      "unauthorized",
      sentence("OpenCode rejected the password for {0}.", name),
      status,
    );
  const reason = status === 404 ? "not-found" : "refused";
  return new ServerFailure(
    name,
    reason,
    sentence("OpenCode rejected {0} (HTTP {1}): {2}", name, String(status), describeServerError(error)),
    status,
  );
}
