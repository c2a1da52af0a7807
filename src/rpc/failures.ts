import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { AskFirst, messageOf, Refusal, ToldError } from "../engine/errors.ts";
import type { RefusalCode } from "../engine/errors.ts";
import { ServerFailure } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";

/** The window and the daemon are of versions that do not understand each other. */
export class OtherProtocol extends ToldError {
  override readonly name = "OtherProtocol";

  constructor(readonly older: "window" | "daemon") {
    super(
      older === "window"
        ? sentence(
            "Another editor is running a newer version of Async Agents. Update the extension in this editor.",
          )
        : sentence("The background process of Async Agents is from an older version."),
    );
  }
}

type Failure =
  | { readonly name: "Refusal"; readonly code: RefusalCode; readonly text: Text; readonly agent?: string }
  | ({ readonly name: "ServerFailure" } & Pick<ServerFailure, "call" | "reason" | "status" | "text">)
  | { readonly name: "ConnectionError"; readonly failure: ConnectionFailure }
  | { readonly name: "OtherProtocol"; readonly older: "window" | "daemon" }
  | { readonly name: "Error"; readonly message: string };

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

/** Of what the daemon described; undefined: that is no error of ours. */
export function errorFrom(data: unknown): Error | undefined {
  const told = data as Failure | undefined;
  switch (told?.name) {
    case "Refusal":
      return told.agent === undefined
        ? new Refusal(told.code, told.text)
        : new AskFirst(told.agent, told.text);
    case "ServerFailure":
      return new ServerFailure(told.call, told.reason, told.text, told.status);
    case "ConnectionError":
      return new ConnectionError(told.failure);
    case "OtherProtocol":
      return new OtherProtocol(told.older);
    case "Error":
      return new Error(told.message);
    default:
      return undefined;
  }
}
