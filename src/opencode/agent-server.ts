import { access } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type * as api from "@opencode-ai/sdk/v2/types";
import * as z from "zod/mini";
import type { Event } from "../engine/event.ts";
import { ServerFailure } from "../engine/ports.ts";
import type { AgentServer, NewSession } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type {
  AgentInfo,
  Message,
  ModelInfo,
  PendingRequest,
  PermissionRequest,
  PermissionRule,
  Prompt,
  RequestAnswer,
  ServerEvent,
  Session,
  SessionChanges,
  SessionOwner,
  SessionStatus,
  UserSave,
} from "../engine/server-model.ts";
import type { TaskRecord } from "../engine/task.ts";
import { call, callName, ignored } from "./call.ts";
import type { Method, ServerClient, ServerRequest } from "./client.ts";
import { IGNORES_CASE } from "./file-names.ts";
import { KeyedQueue } from "./keyed-queue.ts";
import { RECORD_KEY, readRecord } from "./record-codec.ts";
import {
  encoded,
  inDirectory,
  messagesRequest,
  newSessionBody,
  promptBody,
  replayRequest,
} from "./requests.ts";
import * as schemas from "./schemas.ts";
import { ReportedPermissions, type PermissionStore } from "./reported-permissions.ts";
import { SessionDirectories } from "./session-directories.ts";
import { SharedReads } from "./shared-reads.ts";

/** More sessions than any folder has. Without a limit the server returns only the newest 100. */
const ALL_SESSIONS = 1_000_000;

/** The engine's interface to a server, implemented with OpenCode's SDK. */
export class OpenCodeAgentServer implements AgentServer {
  /** OpenCode 1 never does. */
  readonly resumesTurns = false;
  private readonly recordWrites = new KeyedQueue();
  /** Tasks that are launched or end together ask for the same. */
  private readonly reads = new SharedReads();
  private readonly reportedPermissions: ReportedPermissions;

  constructor(
    /** Returns the client of the present connection. Undefined while there is no connection. */
    private readonly client: () => ServerClient | undefined,
    readonly onEvent: Event<ServerEvent>,
    /** The timeout of calls in milliseconds. Defaults to one minute. */
    private readonly callTimeoutMs?: () => number | undefined,
    private readonly directories = new SessionDirectories(),
    permissions?: PermissionStore,
  ) {
    this.reportedPermissions = new ReportedPermissions(onEvent, permissions);
  }

  async createSession({ directory, ...session }: NewSession): Promise<Session> {
    const body = newSessionBody("POST /session", session);
    // Followed before, so that no event is missed.
    if (directory !== undefined) this.directories.use(directory);
    const request = { url: "/session", body } satisfies api.SessionCreateData;
    const created = await this.call("POST", inDirectory(request, directory), schemas.session);
    this.directories.note(created);
    return created;
  }

  async copySession(sourceID: string, session: NewSession): Promise<Session> {
    const path = { sessionID: sourceID };
    const request = { url: "/session/{sessionID}/fork", path, body: {} } satisfies api.SessionForkData;
    const { id } = await this.call("POST", request, schemas.session);
    try {
      const isLinked = (await this.canWriteHistory()) && (await this.link(id, session));
      return isLinked ? await this.getSession(id, schemas.session) : await this.relabel(id, session);
    } catch (error) {
      await this.deleteSession(id).catch(() => undefined);
      throw error;
    }
  }

  /** Gives a copied session the properties of a new one. False if the server refused. */
  private async link(id: string, { task, ...session }: NewSession): Promise<boolean> {
    const [current, messages] = await Promise.all([
      this.getSession(id, z.record(z.string(), z.unknown())),
      this.messages(id),
    ]);
    const body = newSessionBody(`POST /session/${id}/fork`, { ...session, task: task && { ...task, id } });
    const { NOTHING_SPENT, sessionEvent } = await import("./history.ts");
    const info = { ...current, ...body, ...NOTHING_SPENT };
    const event = sessionEvent(id, info, messages, Date.now(), Math.random);
    try {
      await this.call("POST", replayRequest(String(current["directory"]), [event]), ignored);
      return true;
    } catch (error) {
      if (error instanceof ServerFailure && error.reason === "refused") return false;
      throw error;
    }
  }

  /** Gives a copied session the properties that can be set without linking it to its parent. */
  private async relabel(id: string, { title, permission, task }: NewSession): Promise<Session> {
    const { cost, tokens } = await this.getSession(id, schemas.session);
    const body = newSessionBody(`PATCH /session/${id}`, {
      title,
      permission,
      task: task && { ...task, id, baseline: { cost, ...tokens } },
    });
    return this.update(id, body, schemas.session);
  }

  /** A server that supports replay rejects one without events with 400. Other servers do not have the endpoint. */
  async canWriteHistory(): Promise<boolean> {
    try {
      await this.call("POST", replayRequest("", []), ignored);
      return true;
    } catch (error) {
      if (error instanceof ServerFailure && error.reason === "unreachable") throw error;
      return error instanceof ServerFailure && error.status === 400;
    }
  }

  async writeHistory(sessionID: string, messages: readonly Message[]): Promise<void> {
    await this.removeMessages(sessionID);
    if (messages.length === 0) return;
    const { directory } = await this.getSession(sessionID, schemas.session);
    const { historyEvents } = await import("./history.ts");
    const events = historyEvents(messages, { sessionID, directory }, Date.now(), Math.random);
    await this.call("POST", replayRequest(directory, events), ignored);
  }

  private async removeMessages(sessionID: string): Promise<void> {
    for (const { info } of await this.messages(sessionID)) {
      const request = {
        url: "/session/{sessionID}/message/{messageID}",
        path: { sessionID, messageID: info.id },
      } satisfies api.SessionDeleteMessageData;
      await unlessGone(this.call("DELETE", request, ignored));
    }
  }

  async session(sessionID: string): Promise<Session | undefined> {
    const session = await this.readSession(sessionID);
    // It may run in a worktree without being listed.
    if (session) await this.directories.meet(session, (id) => this.readSession(id));
    return session;
  }

  private readSession(id: string): Promise<Session | undefined> {
    return unlessGone(this.reads.run(`session ${id}`, () => this.getSession(id, schemas.session)));
  }

  /** Which folder a session belongs to. */
  ownerOf(sessionID: string): Promise<SessionOwner> {
    return this.directories.ownerOf(sessionID, (id) => this.readSession(id));
  }

  restrict(sessionID: string, rules: readonly PermissionRule[]): Promise<Session> {
    // The server appends the rules.
    return this.update(sessionID, { permission: [...rules] }, schemas.session);
  }

  async sessions(): Promise<readonly Session[]> {
    // Sessions in worktrees of the repository are only listed with those of the whole project.
    const isInRepository = this.client()?.folder.isInRepository;
    const query = { limit: ALL_SESSIONS, ...(isInRepository && { scope: "project" as const }) };
    const request = { url: "/session", query } satisfies api.SessionListData;
    const sessions = await this.call("GET", request, z.array(schemas.session));
    return isInRepository ? this.directories.ours(sessions) : sessions;
  }

  /** Also succeeds if the session is already gone. */
  async deleteSession(sessionID: string): Promise<void> {
    const request = { url: "/session/{sessionID}", path: { sessionID } } satisfies api.SessionDeleteData;
    await unlessGone(this.call("DELETE", request, ignored));
  }

  saveRecord(record: TaskRecord): Promise<Session | undefined> {
    // The server replaces the whole metadata without comparing, so concurrent writes would lose one.
    return this.recordWrites.run(record.id, () => unlessGone(this.writeRecord(record)));
  }

  private async writeRecord(record: TaskRecord): Promise<Session> {
    const sessionID = record.id;
    const name = `PATCH /session/${sessionID}`;
    const current = await this.getSession(sessionID, schemas.storedSession);
    const reading = readRecord(current);
    if (reading.kind === "unreadable")
      throw new ServerFailure(
        name,
        "refused",
        sentence("The task record wasn't changed. {0}", reading.reason),
      );
    const stored = encoded(name, record);
    if (reading.kind === "task" && reading.record.revision >= record.revision) {
      if (isDeepStrictEqual(current.metadata?.[RECORD_KEY], JSON.parse(JSON.stringify(stored))))
        return schemas.toSession(current);
      throw new ServerFailure(
        name,
        "refused",
        sentence("Another window changed this task in the meantime. Check it and try again."),
      );
    }
    const metadata = { ...current.metadata, [RECORD_KEY]: stored };
    const written = await this.update(sessionID, { metadata }, schemas.session);
    this.directories.note(written);
    return written;
  }

  private update<T>(
    sessionID: string,
    body: NonNullable<api.SessionUpdateData["body"]>,
    schema: z.ZodMiniType<T>,
  ): Promise<T> {
    const path = { sessionID };
    const request = { url: "/session/{sessionID}", path, body } satisfies api.SessionUpdateData;
    return this.call("PATCH", request, schema);
  }

  private getSession<T>(sessionID: string, schema: z.ZodMiniType<T>): Promise<T> {
    const request = { url: "/session/{sessionID}", path: { sessionID } } satisfies api.SessionGetData;
    return this.call("GET", request, schema);
  }

  messages(sessionID: string, limit?: number): Promise<readonly Message[]> {
    return this.reads.run(`messages ${sessionID} ${limit}`, () =>
      this.call("GET", messagesRequest(sessionID, limit), z.array(schemas.message)),
    );
  }

  async changes(sessionID: string, since: number, saves: readonly UserSave[] = []): Promise<SessionChanges> {
    const [{ sessionChanges }, { rawMessages }] = await Promise.all([
      import("./changes.ts"),
      import("./file-steps.ts"),
    ]);
    const source = {
      messages: (id: string, limit?: number) => this.call("GET", messagesRequest(id, limit), rawMessages),
      sessions: () => this.sessions(),
      statuses: () => this.statuses(),
      ignoresCase: IGNORES_CASE,
    };
    return sessionChanges(source, sessionID, since, saves);
  }

  message(sessionID: string, messageID: string): Promise<Message | undefined> {
    const request = {
      url: "/session/{sessionID}/message/{messageID}",
      path: { sessionID, messageID },
    } satisfies api.SessionMessageData;
    const read = () => this.call("GET", request, schemas.message);
    return unlessGone(this.reads.run(`message ${sessionID} ${messageID}`, read));
  }

  releaseDirectory(directory: string): Promise<void> {
    return this.directories.release(directory);
  }

  async prompt(sessionID: string, prompt: Prompt): Promise<void> {
    await this.enter(sessionID);
    const request = {
      url: "/session/{sessionID}/prompt_async",
      path: { sessionID },
      body: promptBody(prompt),
    } satisfies api.SessionPromptAsyncData;
    return this.call("POST", request, ignored);
  }

  abort(sessionID: string): Promise<void> {
    const request = { url: "/session/{sessionID}/abort", path: { sessionID } } satisfies api.SessionAbortData;
    return this.call("POST", request, ignored);
  }

  statuses(): Promise<ReadonlyMap<string, SessionStatus>> {
    return this.reads.run("statuses", () => this.readStatuses());
  }

  async isWorkingIn(directory: string): Promise<boolean> {
    return Object.values(await this.statusesIn(directory)).some(({ type }) => type !== "idle");
  }

  private async readStatuses(): Promise<ReadonlyMap<string, SessionStatus>> {
    const all = await this.directories.everywhere((directory) => this.statusesIn(directory));
    return new Map(all.flatMap((some) => Object.entries(some)));
  }

  private statusesIn(directory: string | undefined): Promise<Record<string, SessionStatus>> {
    const request = { url: "/session/status" } satisfies api.SessionStatusData;
    return this.call("GET", inDirectory(request, directory), z.record(z.string(), schemas.sessionStatus));
  }

  agents(): Promise<readonly AgentInfo[]> {
    const request = { url: "/agent" } satisfies api.AppAgentsData;
    return this.reads.run("agents", () => this.call("GET", request, schemas.agents));
  }

  models(): Promise<readonly ModelInfo[]> {
    return this.call("GET", { url: "/config/providers" } satisfies api.ConfigProvidersData, schemas.models);
  }

  async pendingRequests(): Promise<readonly PendingRequest[]> {
    const list = { url: "/question" } satisfies api.QuestionListData;
    const [permissions, questions] = await Promise.all([
      this.permissionRequests(),
      this.directories.everywhere((directory) =>
        this.call("GET", inDirectory(list, directory), schemas.questionRequests),
      ),
    ]);
    return [...permissions, ...questions.flat()].sort((a, b) => (timeOf(a.id) < timeOf(b.id) ? -1 : 1));
  }

  /**
   * OpenCode 1.18 refuses to list permissions while one has metadata that JSON cannot represent, such as a search
   * without a path. The permissions reported by events are better than no connection.
   */
  private async permissionRequests(): Promise<readonly PermissionRequest[]> {
    const request = { url: "/permission" } satisfies api.PermissionListData;
    await this.directories.everywhere(async (directory) => {
      const list = this.call("GET", inDirectory(request, directory), schemas.permissionRequests);
      try {
        await this.reportedPermissions.replace(list, (id) => this.directories.of(id) === directory);
      } catch (error) {
        if (!(error instanceof ServerFailure) || error.status !== 400) throw error;
      }
    });
    return this.reportedPermissions.all();
  }

  async answer(request: PendingRequest, answer: RequestAnswer): Promise<void> {
    if (answer.type !== "dismiss" && answer.type !== request.type)
      throw new TypeError(`A ${request.type} cannot be answered like a ${answer.type}.`);
    const path = { requestID: request.id };
    const send = (route: ServerRequest): Promise<void> =>
      this.call("POST", inDirectory(route, this.directories.of(request.sessionID)), ignored);
    if (answer.type === "question") {
      const body = { answers: answer.answers.map((labels) => [...labels]) };
      const reply = { url: "/question/{requestID}/reply", path, body } satisfies api.QuestionReplyData;
      return send(reply);
    }
    if (request.type === "question") {
      const rejection = { url: "/question/{requestID}/reject", path } satisfies api.QuestionRejectData;
      return send(rejection);
    }
    const { reply, message } =
      answer.type === "permission" ? answer : { reply: "reject" as const, message: undefined };
    const body = { reply, ...(message !== undefined && { message }) };
    const decision = { url: "/permission/{requestID}/reply", path, body } satisfies api.PermissionReplyData;
    await send(decision).catch((error: unknown) => {
      if (error instanceof ServerFailure && error.reason === "not-found")
        this.reportedPermissions.close(request.id);
      throw error;
    });
  }

  /** Prepares for a prompt. Rejects if the session's worktree is gone, where the prompt could never be answered. */
  private async enter(sessionID: string): Promise<void> {
    const worktree = this.directories.of(sessionID);
    if (worktree === undefined) return;
    try {
      await access(worktree);
    } catch {
      const name = `POST /session/${sessionID}/prompt_async`;
      throw new ServerFailure(name, "refused", sentence("The worktree {0} no longer exists.", worktree));
    }
    this.directories.use(worktree);
  }

  private async call<T>(method: Method, request: ServerRequest, schema: z.ZodMiniType<T>): Promise<T> {
    const client = this.client();
    if (!client)
      throw new ServerFailure(
        callName(method, request),
        "unreachable",
        sentence("The connection to OpenCode was lost. Try again when it is restored."),
      );
    return call(client, method, request, schema, this.callTimeoutMs?.());
  }
}

/** The part of an ID that sorts IDs of different kinds by the time when they were given. */
function timeOf(id: string): string {
  return id.slice(id.indexOf("_"));
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ServerFailure && error.reason === "not-found") return undefined;
    throw error;
  }
}
