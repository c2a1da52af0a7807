import type { Socket } from "node:net";
import * as z from "zod/mini";
import { AskFirst, messageOf, Refusal } from "../engine/errors.ts";
import type { RefusalCode } from "../engine/errors.ts";
import { ServerFailure } from "../engine/ports.ts";
import { isText, sentence, type Text } from "../engine/sentence.ts";

/* What windows tell each other: one JSON object per line, each answer with the ID of its request. */

/** A prompt may have a million characters, which JSON can make several times as many. */
const MAX_LINE_CHARS = 8_000_000;

const text = z.custom<Text>(isText);
const failure = z.discriminatedUnion("name", [
  z.object({ name: z.literal("Refusal"), code: z.string(), text, agent: z.optional(z.string()) }),
  z.object({
    name: z.literal("ServerFailure"),
    call: z.string(),
    reason: z.enum(["unreachable", "refused", "unexpected-answer", "unauthorized", "not-found"]),
    status: z.optional(z.number()),
    text,
  }),
  z.object({ name: z.literal("Error"), message: z.string() }),
]);
type Failure = z.infer<typeof failure>;

export const windowRequest = z.object({ id: z.number(), method: z.string(), args: z.unknown() });
export type WindowRequest = z.infer<typeof windowRequest>;

export const windowResponse = z.object({
  id: z.number(),
  result: z.optional(z.unknown()),
  failure: z.optional(failure),
});
export type WindowResponse = z.infer<typeof windowResponse>;

/** Throws a {@link Refusal} where the message is too long to be taken. */
export function encodeLine(message: WindowRequest | WindowResponse): string {
  const line = `${JSON.stringify(message)}\n`;
  if (line.length > MAX_LINE_CHARS)
    throw new Refusal(
      "invalid-argument",
      sentence("This is too long to be handed to the window that writes."),
    );
  return line;
}

/** Tells each message that comes in. Whoever sends anything else is none of us: the connection is closed. */
export function readMessages<T extends z.ZodMiniType>(
  socket: Socket,
  schema: T,
  onMessage: (message: z.output<T>) => void,
): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = text.split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const parsed = z.safeParse(schema, parseJson(line));
      if (!parsed.success) return socket.destroy();
      onMessage(parsed.data);
    }
    if (rest.length > MAX_LINE_CHARS) socket.destroy();
  });
}

export function describeError(error: unknown): Failure {
  if (error instanceof AskFirst)
    return { name: "Refusal", code: error.code, text: error.text, agent: error.agent };
  if (error instanceof Refusal) return { name: "Refusal", code: error.code, text: error.text };
  if (error instanceof ServerFailure) {
    const { call, reason, status, text } = error;
    return { name: "ServerFailure", call, reason, status, text };
  }
  return { name: "Error", message: messageOf(error) };
}

export function errorFrom(told: Failure): Error {
  switch (told.name) {
    case "Refusal":
      if (told.agent !== undefined) return new AskFirst(told.agent, told.text);
      // A newer version may know more codes; they are for programs that know them too.
      return new Refusal(told.code as RefusalCode, told.text);
    case "ServerFailure":
      return new ServerFailure(told.call, told.reason, told.text, told.status);
    case "Error":
      return new Error(told.message);
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
