import { connect } from "node:net";
import * as z from "zod/mini";
import { KEEP_ALIVE_MS, toolReply, type ToolAnswer } from "../bridge/tool-call.ts";
import { parseJson } from "../state/json-files.ts";
import type { EndpointEntry } from "../bridge/endpoint-entries.ts";

/** How long an endpoint may be silent, in milliseconds, before it counts as hanging or suspended. */
export interface SilenceLimits {
  /** Before it accepts the call, which it does as soon as it has received all of it. */
  readonly untakenMs: number;
  /** After it has accepted the call. */
  readonly takenMs: number;
}

const SILENCE_LIMITS: SilenceLimits = { untakenMs: 5_000, takenMs: 3 * KEEP_ALIVE_MS };

/** The outcome of a request to an endpoint. */
export type Outcome =
  | { readonly kind: "reply"; readonly reply: ToolAnswer }
  /** The session belongs to another folder. */
  | { readonly kind: "not-ours" }
  /** The endpoint accepted the call, but the connection broke `heldMs` later, before the reply. */
  | { readonly kind: "broken"; readonly heldMs: number }
  /** The endpoint, or another program on its port, rejected the call. */
  | { readonly kind: "rejected"; readonly status: number }
  | { readonly kind: "unreachable" };

/** A request to an endpoint. */
export interface Ask {
  /** The HTTP path. */
  readonly path: string;
  /** The body as JSON. */
  readonly body: string;
}

/**
 * Sends a request to an endpoint. Rejects only if `signal` aborts.
 *
 * Uses a socket because in Bun, `fetch` and `node:http` would send the call and its token to the proxy in `HTTP_PROXY`,
 * and would end long waits after a few minutes. Uses HTTP/1.0 because its responses are not chunked.
 */
export async function callEndpoint(
  { port, token }: Pick<EndpointEntry, "port" | "token">,
  ask: Ask,
  signal: AbortSignal,
  silence = SILENCE_LIMITS,
): Promise<Outcome> {
  signal.throwIfAborted();
  const socket = connect(port, "127.0.0.1");
  const abandon = (): void => void socket.destroy();
  signal.addEventListener("abort", abandon);
  socket.setTimeout(silence.untakenMs, abandon);
  let answer = "";
  let takenAt: number | undefined;
  try {
    socket.write(request(port, token, ask));
    for await (const text of socket.setEncoding("utf8") as AsyncIterable<string>) {
      answer += text;
      if (takenAt !== undefined || statusOf(answer) !== 200) continue;
      takenAt = performance.now();
      socket.setTimeout(silence.takenMs);
    }
  } catch {
    // The response read so far shows what happened.
  } finally {
    signal.removeEventListener("abort", abandon);
    socket.destroy();
  }
  signal.throwIfAborted();
  return outcomeOf(answer, takenAt === undefined ? 0 : performance.now() - takenAt);
}

function request(port: number, token: string, { path, body }: Ask): string {
  return [
    `POST ${path} HTTP/1.0`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ].join("\r\n");
}

function outcomeOf(answer: string, heldMs: number): Outcome {
  const status = statusOf(answer);
  if (status === undefined) return { kind: "unreachable" };
  if (status !== 200) return { kind: "rejected", status };
  const { data: reply } = z.safeParse(toolReply, parseJson(answer.trimEnd().split("\n").at(-1)));
  if (!reply) return { kind: "broken", heldMs };
  return reply.type === "not-ours" ? { kind: "not-ours" } : { kind: "reply", reply };
}

/** Undefined if the head of the response is incomplete or not HTTP. */
function statusOf(answer: string): number | undefined {
  const status = /^HTTP\/1\.\d (\d{3}) .*?\r\n\r\n/s.exec(answer)?.[1];
  return status === undefined ? undefined : Number(status);
}
