import * as z from "zod/mini";
import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { AskFirst, messageOf, Refusal, ToldError } from "../engine/errors.ts";
import type { RefusalCode } from "../engine/errors.ts";
import { ServerFailure } from "../engine/ports.ts";
import { isText, sentence, type Text } from "../engine/sentence.ts";

/** The window and the daemon are of versions that do not understand each other. */
export class OtherProtocol extends ToldError {
  override readonly name = "OtherProtocol";

  constructor(readonly older: "window" | "daemon") {
    super(
      older === "window"
        ? sentence("Another editor runs a newer version of Async Agents. Update it in this editor.")
        : sentence("The background process of Async Agents is of an older version."),
    );
  }
}

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
  z.object({
    name: z.literal("ConnectionError"),
    failure: z.object({ code: z.string(), message: text, remedy: text }),
  }),
  z.object({ name: z.literal("OtherProtocol"), older: z.enum(["window", "daemon"]) }),
  z.object({ name: z.literal("Error"), message: z.string() }),
]);
type Failure = z.infer<typeof failure>;

/** An error as it travels. */
export function describeError(error: unknown): Failure {
  if (error instanceof AskFirst)
    return { name: "Refusal", code: error.code, text: error.text, agent: error.agent };
  if (error instanceof Refusal) return { name: "Refusal", code: error.code, text: error.text };
  if (error instanceof ServerFailure) {
    const { call, reason, status, text } = error;
    return { name: "ServerFailure", call, reason, status, text };
  }
  if (error instanceof ConnectionError) return { name: "ConnectionError", failure: error.failure };
  if (error instanceof OtherProtocol) return { name: "OtherProtocol", older: error.older };
  return { name: "Error", message: messageOf(error) };
}

/** Undefined: this describes no error of ours. */
export function errorFrom(data: unknown): Error | undefined {
  const { data: told } = z.safeParse(failure, data);
  switch (told?.name) {
    case undefined:
      return undefined;
    case "Refusal":
      if (told.agent !== undefined) return new AskFirst(told.agent, told.text);
      // A newer version may know more codes; they are for programs that know them too.
      return new Refusal(told.code as RefusalCode, told.text);
    case "ServerFailure":
      return new ServerFailure(told.call, told.reason, told.text, told.status);
    case "ConnectionError":
      return new ConnectionError(told.failure as ConnectionFailure);
    case "OtherProtocol":
      return new OtherProtocol(told.older);
    case "Error":
      return new Error(told.message);
  }
}
