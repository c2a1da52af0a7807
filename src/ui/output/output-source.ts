import type { ConnectionState } from "../../engine/connection.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folders } from "../folders/folders.ts";
import type { OutputSource } from "./output-session.ts";

/** What the panels show, from the folders and their tasks. */
export function createOutputSource(known: Tasks, folders: Folders): OutputSource {
  return {
    child: (id) => known.child(id),
    transcript: (sessionID) => known.transcript(sessionID),
    onDidChangeChild: (listener) => {
      const tasks = known.onDidChange(({ id }) => listener(id));
      const subagents = known.onDidChangeSubagent(({ id }) => listener(id));
      return {
        dispose: () => {
          tasks.dispose();
          subagents.dispose();
        },
      };
    },
    requests: () => known.openRequests(),
    onDidChangeRequests: known.onDidChangeRequests,
    toolInput: (request) => known.toolInput(request),
    connectionKind: (id) => {
      const folder = folders.of(id);
      // A session that no folder knows may be of any that is not connected.
      const kinds = (folder ? [folder] : folders.all).map(({ connector }) => kindOf(connector.state));
      if (kinds.includes("connecting")) return "connecting";
      return kinds.includes("disconnected") || kinds.length === 0 ? "disconnected" : "connected";
    },
    onDidChangeConnection: (listener) => {
      const changes = folders.onDidChange(listener);
      const connections = folders.follow(({ connector }) => connector.onDidChange(listener));
      return {
        dispose: () => {
          changes.dispose();
          connections.dispose();
        },
      };
    },
  };
}

function kindOf({ kind }: ConnectionState): ReturnType<OutputSource["connectionKind"]> {
  if (kind === "connected") return "connected";
  return kind === "connecting" || kind === "reconnecting" ? "connecting" : "disconnected";
}
