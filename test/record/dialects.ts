/* How to call each major version of OpenCode. Version 2: from its documentation and source; never run. */

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
}

/** What waits for the user. */
export interface Asked {
  readonly kind: "permission" | "question";
  readonly id: string;
  /** What the event says of it. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface Dialect {
  /** The server describes itself here. */
  readonly description: string;
  /** Other routes. Only the form of their answers is recorded, as these belong to the user. */
  readonly routes: readonly string[];
  readonly models: string;
  readonly events: string;
  /** The name of the tool that runs commands. */
  readonly shell: string;
  /** @param asks whether running commands needs the user's permission */
  create(directory: string, asks: boolean): Call;
  prompt(sessionID: string, text: string): Call;
  interrupt(sessionID: string): Call;
  answer(sessionID: string, asked: Asked): Call;
  /** What can be read of a session once its turn has ended. */
  reads(sessionID: string): readonly string[];
  /** Whether an event of this type says that the model has begun to answer. */
  hasBegun(type: string): boolean;
  /** Whether an event of this type says that the turn has ended. */
  hasEnded(type: string): boolean;
}

const version1: Dialect = {
  description: "/doc",
  routes: ["/agent", "/permission", "/question", "/session/status", "/session?limit=1"],
  models: "/config/providers",
  events: "/event",
  shell: "bash",
  create: (_, asks) => ({
    method: "POST",
    path: "/session",
    body: {
      title: "Recording",
      ...(asks && { permission: [{ permission: "bash", pattern: "*", action: "ask" }] }),
    },
  }),
  prompt: (id, text) => ({
    method: "POST",
    path: `/session/${id}/prompt_async`,
    body: { agent: "build", parts: [{ type: "text", text }] },
  }),
  interrupt: (id) => ({ method: "POST", path: `/session/${id}/abort` }),
  answer: (_, { kind, id }) =>
    kind === "permission"
      ? { method: "POST", path: `/permission/${id}/reply`, body: { reply: "once" } }
      : { method: "POST", path: `/question/${id}/reply`, body: { answers: [["Red"]] } },
  reads: (id) => [`/session/${id}`, `/session/${id}/message`],
  hasBegun: (type) => type === "message.part.delta",
  hasEnded: (type) => type === "session.idle",
};

const version2: Dialect = {
  description: "/openapi.json",
  routes: [
    "/api/agent",
    "/api/model/default",
    "/api/permission/request",
    "/api/form",
    "/api/session/active",
    "/api/session?limit=1",
    "/api/session?parentID=null&limit=1",
    "/api/worktree",
    "/global/health",
  ],
  models: "/api/model",
  events: "/api/event",
  shell: "shell",
  create: (directory, asks) => ({
    method: "POST",
    path: "/api/session",
    body: {
      title: "Recording",
      agent: "build",
      location: { directory },
      metadata: { recording: true },
      ...(asks && { permissions: [{ action: "shell", resource: "*", effect: "ask" }] }),
    },
  }),
  prompt: (id, text) => ({
    method: "POST",
    path: `/api/session/${id}/prompt`,
    body: { text, delivery: "queue" },
  }),
  interrupt: (id) => ({ method: "POST", path: `/api/session/${id}/interrupt` }),
  answer: (sessionID, { kind, id, details }) =>
    kind === "permission"
      ? {
          method: "POST",
          path: `/api/session/${sessionID}/permission/${id}/reply`,
          // The name of the field has changed between releases.
          body: { decision: "once", reply: "once" },
        }
      : {
          method: "POST",
          path: `/api/session/${sessionID}/form/${id}/reply`,
          body: { answer: Object.fromEntries(fieldsOf(details).map((key) => [key, "Red"])) },
        },
  reads: (id) => [
    `/api/session/${id}`,
    `/api/session/${id}/message?order=asc&limit=200`,
    `/api/session/${id}/inbox`,
    `/api/experimental/session/${id}/log?after=0`,
    `/api/session?parentID=${id}&limit=1`,
  ],
  hasBegun: (type) => type === "session.text.delta" || type === "session.reasoning.delta",
  hasEnded: (type) => /^session\.execution\.(succeeded|failed|interrupted)$/.test(type),
};

export const DIALECTS = { 1: version1, 2: version2 } as const;

function fieldsOf(details: Asked["details"]): readonly string[] {
  const fields = (details["form"] as { fields?: unknown } | undefined)?.fields ?? details["fields"];
  return Array.isArray(fields)
    ? fields.flatMap((field: { key?: unknown }) => (typeof field.key === "string" ? [field.key] : []))
    : [];
}
