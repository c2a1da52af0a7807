import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { AskFirst, messageOf, Refusal, UserFacingError } from "../engine/errors.ts";
import type { RefusalCode } from "../engine/errors.ts";
import { ServerFailure } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";

export const NEWER_RUNS = sentence("A newer version of Async Agents is already running.");
export const UPDATE = sentence("Update the extension if needed, then reload the window.");

/** The window and the daemon use different versions of the protocol. */
export class OtherProtocol extends UserFacingError {
  override readonly name = "OtherProtocol";

  constructor(readonly older: "window" | "daemon") {
    super(
      older === "window"
        ? sentence("{0} {1}", NEWER_RUNS, UPDATE)
        : sentence("The background process of Async Agents is from an older version."),
    );
  }
}

type Failure =
  | { readonly name: "Refusal"; readonly code: RefusalCode; readonly text: Text; readonly agent?: string }
  | ({ readonly name: "ServerFailure" } & Pick<ServerFailure, "call" | "reason" | "status" | "text">)
  | { readonly name: "ConnectionError"; readonly failure: ConnectionFailure }
  | { readonly name: "OtherProtocol"; readonly older: "window" | "daemon" }
  | { readonly name: "UserFacingError"; readonly text: Text }
  | { readonly name: "Error"; readonly message: string };

/** The serialized form of an error. */
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
  if (error instanceof UserFacingError) return { name: "UserFacingError", text: error.text };
  return { name: "Error", message: messageOf(error) };
}

/** Restores an error from its serialized form. Undefined if the data is not such an error. */
export function errorFrom(data: unknown): Error | undefined {
  const failure = data as Failure | undefined;
  switch (failure?.name) {
    case "Refusal":
      return failure.agent === undefined
        ? new Refusal(failure.code, failure.text)
        : new AskFirst(failure.agent, failure.text);
    case "ServerFailure":
      return new ServerFailure(failure.call, failure.reason, failure.text, failure.status);
    case "ConnectionError":
      return new ConnectionError(failure.failure);
    case "OtherProtocol":
      return new OtherProtocol(failure.older);
    case "UserFacingError":
      return new UserFacingError(failure.text);
    case "Error":
      return new Error(failure.message);
    default:
      return undefined;
  }
}
