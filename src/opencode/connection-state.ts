import type { ConnectionFailure, ConnectionState } from "../engine/connection.ts";
import type { Text } from "../engine/sentence.ts";
import { isUntested } from "./versions.ts";

/**
 * How often the stream of an own server may break before it first opens, until those waiting for it get an error. One that
 * doesn't respond at all has about a minute: it may be busy with the tasks of an earlier daemon, and ends once it is given up.
 */
const BEARABLE_CUTS = 6;

/** What can happen to a connection. */
export type ConnectionAction =
  /** `detail` describes the current step, for users. */
  | { readonly type: "progress"; readonly detail: Text }
  /** Events arrive (again). Earlier ones may have been missed. */
  | {
      readonly type: "opened";
      readonly url: string;
      readonly version: string;
      readonly own: boolean;
      /** Whether an OpenCode 2 on this computer uses the same database. */
      readonly sharesDatabase?: boolean;
    }
  /** Events do not arrive. Connecting to them is retried. */
  | {
      readonly type: "cut";
      readonly reason: Text;
      /** The number of successive cuts. */
      readonly cuts: number;
      readonly own: boolean;
      /** The error for those who do not want to wait. */
      readonly failure: ConnectionFailure;
    }
  /** The connection failed, and retrying is useless. */
  | { readonly type: "failed"; readonly failure: ConnectionFailure }
  /** The connection was closed. */
  | { readonly type: "left" };

/** The next state. The same object if the action changes nothing. */
export function reduce(state: ConnectionState, action: ConnectionAction): ConnectionState {
  switch (action.type) {
    case "progress":
      return isUp(state) ? state : { kind: "connecting", detail: action.detail };
    case "opened": {
      const { url, version, own, sharesDatabase } = action;
      return {
        kind: "connected",
        url,
        version,
        own,
        ...(isUntested(version) && { isUntested: true }),
        ...(sharesDatabase && { sharesDatabase }),
      };
    }
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

/** Whether a server is in use, even if its events do not arrive at the moment. */
export function isUp({ kind }: ConnectionState): boolean {
  return kind === "connected" || kind === "reconnecting";
}

/** Whether to keep waiting: an own server is restarted after a crash, but stays unable to work in a folder. */
function isBearable({ own, cuts, failure: { code } }: ConnectionAction & { readonly type: "cut" }): boolean {
  return own && cuts <= BEARABLE_CUTS && code !== "start-failed" && code !== "start-timeout";
}
