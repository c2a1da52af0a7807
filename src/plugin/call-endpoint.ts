import { connect } from "node:net";
import * as z from "zod/mini";
import { KEEP_ALIVE_MS, toolReply, type ToolReply } from "../bridge/tool-call.ts";
import { parseJson } from "../state/json-files.ts";
import type { EndpointEntry } from "../bridge/endpoint-entries.ts";

/** How long an endpoint may say nothing, in milliseconds. One that says nothing for longer hangs or was suspended. */
export interface SilenceLimits {
  /** Before it takes the call, which it does as soon as it has all of it. */
  readonly untakenMs: number;
  /** After that. */
  readonly takenMs: number;
}

const SILENCE_LIMITS: SilenceLimits = { untakenMs: 5_000, takenMs: 3 * KEEP_ALIVE_MS };

/** What came of asking an endpoint. */
export type Outcome =
  | { readonly kind: "reply"; readonly reply: ToolReply }
  /** It took the call, and the connection broke before the reply, `heldMs` later. */
  | { readonly kind: "broken"; readonly heldMs: number }
  /** Whoever listens there does not take the call. */
  | { readonly kind: "rejected"; readonly status: number }
  | { readonly kind: "unreachable" };

/** Something to ask of an endpoint. */
export interface Ask {
  /** Of the endpoint. */
  readonly path: string;
  /** As JSON. */
  readonly body: string;
}

/**
 * Asks one endpoint. Rejects only if `signal` aborts.
 *
 * A socket instead of `fetch` or `node:http`: in Bun, both would hand the call and its token to the proxy that
 * `HTTP_PROXY` names, and end a long wait after some minutes. HTTP/1.0, because its answer has no chunks to decode.
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
    // What was read until then says how far it got.
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
  const reply = z.safeParse(toolReply, parseJson(answer.trimEnd().split("\n").at(-1)));
  return reply.success ? { kind: "reply", reply: reply.data } : { kind: "broken", heldMs };
}

/** Undefined: the head of the answer is not all there, or it is no HTTP. */
function statusOf(answer: string): number | undefined {
  const status = /^HTTP\/1\.\d (\d{3}) .*?\r\n\r\n/s.exec(answer)?.[1];
  return status === undefined ? undefined : Number(status);
}
