import type { ConnectionFailure, ConnectionState } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";

/** How often the stream of a server of ours may break before it was open, until whoever waits for it is told. */
const BEARABLE_CUTS = 3;

/** What happens on the way to a server, and while it is used. */
export type ConnectionAction =
  /** `detail` says what is going on, for users. */
  | { readonly type: "progress"; readonly detail: Text }
  /** Events flow (again); what happened before may have been missed. */
  | { readonly type: "opened"; readonly url: string; readonly version: string; readonly own: boolean }
  /** Events do not flow; they are asked for again. */
  | {
      readonly type: "cut";
      readonly reason: Text;
      /** How many cuts there were in a row. */
      readonly cuts: number;
      readonly own: boolean;
      /** For who cannot wait. */
      readonly failure: ConnectionFailure;
    }
  /** Trying again is no use. */
  | { readonly type: "failed"; readonly failure: ConnectionFailure }
  /** The server is not used any more. */
  | { readonly type: "left" };

/** The state that follows; the same object where the action changes nothing. */
export function reduce(state: ConnectionState, action: ConnectionAction): ConnectionState {
  switch (action.type) {
    case "progress":
      return isUp(state) ? state : { kind: "connecting", detail: action.detail };
    case "opened":
      return { kind: "connected", url: action.url, version: action.version, own: action.own };
    case "cut":
      if (isUp(state)) return { kind: "reconnecting", reason: action.reason };
      return isBearable(action)
        ? { kind: "connecting", detail: action.reason }
        : { kind: "failed", failure: action.failure };
    case "failed":
      if (state.kind === "failed" && state.failure === action.failure) return state;
      return { kind: "failed", failure: action.failure };
    case "left":
      return state.kind === "disconnected" ? state : { kind: "disconnected" };
  }
}

/** Whether a server is used, even if its events do not flow now. */
export function isUp({ kind }: ConnectionState): boolean {
  return kind === "connected" || kind === "reconnecting";
}

/** A server of ours may crash as it is joined; it is started again. That it cannot work in the folder stays so. */
function isBearable({ own, cuts, failure: { code } }: ConnectionAction & { readonly type: "cut" }): boolean {
  return own && cuts <= BEARABLE_CUTS && code !== "start-failed" && code !== "start-timeout";
}
