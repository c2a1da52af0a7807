import type { ConnectionState } from "../../engine/connection.ts";
import type { TaskEngine } from "../../engine/engine.ts";
import type { Event } from "../../engine/event.ts";
import type { OutputSource } from "./output-session.ts";

/** The connection as the person sees it. */
export interface VisibleConnection {
  readonly state: ConnectionState;
  readonly onDidChange: Event<void>;
}

/** What the panels show, from the engine and the connection. */
export function createOutputSource(engine: TaskEngine, connection: VisibleConnection): OutputSource {
  return {
    child: (id) => engine.child(id),
    transcript: (sessionID) => engine.transcript(sessionID),
    onDidChangeChild: (listener) => {
      const tasks = engine.onDidChange(({ id }) => listener(id));
      const subagents = engine.onDidChangeSubagent(({ id }) => listener(id));
      return {
        dispose: () => {
          tasks.dispose();
          subagents.dispose();
        },
      };
    },
    requests: () => engine.openRequests(),
    onDidChangeRequests: engine.onDidChangeRequests,
    toolInput: (request) => engine.toolInput(request),
    connectionKind: () => {
      const { kind } = connection.state;
      if (kind === "connected") return "connected";
      return kind === "connecting" || kind === "reconnecting" ? "connecting" : "disconnected";
    },
    onDidChangeConnection: connection.onDidChange,
  };
}
