import { Emitter, type Disposable } from "../../src/engine/event.ts";
import { ServerFailure, type AgentServer, type Clock, type NewSession } from "../../src/engine/ports.ts";
import type {
  Message,
  PendingRequest,
  Prompt,
  RequestAnswer,
  ServerEvent,
} from "../../src/engine/server-model.ts";
import type { TaskRecord } from "../../src/engine/task.ts";

/** A fault of a call: it doesn't arrive, its answer doesn't, or either of them is delayed. */
export type Fault = "refused" | "answer-lost" | "late" | "answer-late";

/** Milliseconds after which an unanswered call fails. */
const CALL_TIMEOUT_MS = 60_000;

/**
 * The connection between one engine and its server. Calls may fail; events may get lost, be duplicated or reordered.
 */
export class Link implements AgentServer {
  /** Events not delivered yet, oldest first. */
  private readonly waiting: ServerEvent[] = [];
  /** The faults of the next calls, in order. */
  private readonly faults: (Fault | undefined)[] = [];
  /** Held calls; each entry lets one go on. */
  private readonly held = new Set<() => void>();
  private readonly events: Emitter<ServerEvent>;
  private readonly subscription: Disposable;
  private isCut = false;
  readonly onEvent;

  constructor(
    private readonly server: AgentServer,
    private readonly clock: Clock,
  ) {
    this.events = new Emitter((error) => {
      throw error;
    });
    this.onEvent = this.events.event;
    this.subscription = server.onEvent((event) => void this.waiting.push(event));
  }

  get resumesTurns(): boolean {
    return this.server.resumesTurns;
  }

  /** The number of undelivered events. */
  get undelivered(): number {
    return this.waiting.length;
  }

  /** Delivers the oldest undelivered events, by default all. */
  deliver(count = this.waiting.length): void {
    for (const event of this.waiting.splice(0, count)) this.events.fire(event);
  }

  drop(count = this.waiting.length): void {
    this.waiting.splice(0, count);
  }

  /** Duplicates the next event. */
  double(): void {
    const [next] = this.waiting;
    if (next) this.waiting.unshift(next);
  }

  /** Swaps the next two events. */
  swap(): void {
    const [first, second] = this.waiting;
    if (first && second) this.waiting.splice(0, 2, second, first);
  }

  /** Makes a later call fail: the next one, or the one after `after` others. */
  fail(fault: Fault, after = 0): void {
    while (this.faults.length < after) this.faults.push(undefined);
    this.faults[after] = fault;
  }

  /** Lets held calls go on. */
  release(): void {
    for (const goOn of [...this.held]) goOn();
  }

  /** Removes all faults, and lets held calls go on. */
  heal(): void {
    this.faults.length = 0;
    this.release();
  }

  /** Simulates the end of the engine's process: nothing more from it reaches the server. */
  cut(): void {
    this.isCut = true;
    this.subscription.dispose();
    this.events.dispose();
    this.drop();
  }

  createSession(session: NewSession) {
    return this.call("POST /session", () => this.server.createSession(session));
  }

  session(sessionID: string) {
    return this.call(`GET /session/${sessionID}`, () => this.server.session(sessionID));
  }

  restrict(...args: Parameters<AgentServer["restrict"]>) {
    return this.call("PATCH /session/:id", () => this.server.restrict(...args));
  }

  sessions() {
    return this.call("GET /session", () => this.server.sessions());
  }

  deleteSession(sessionID: string) {
    return this.call(`DELETE /session/${sessionID}`, () => this.server.deleteSession(sessionID));
  }

  copySession(sourceID: string, session: NewSession) {
    return this.call(`POST /session/${sourceID}/fork`, () => this.server.copySession(sourceID, session));
  }

  canWriteHistory() {
    return this.call("POST /sync/replay", () => this.server.canWriteHistory());
  }

  writeHistory(sessionID: string, messages: readonly Message[]) {
    return this.call("POST /sync/replay", () => this.server.writeHistory(sessionID, messages));
  }

  saveRecord(record: TaskRecord) {
    return this.call(`PATCH /session/${record.id}`, () => this.server.saveRecord(record));
  }

  messages(sessionID: string, limit?: number) {
    return this.call(`GET /session/${sessionID}/message`, () => this.server.messages(sessionID, limit));
  }

  changes(sessionID: string, since: number) {
    return this.call(`GET /session/${sessionID}/message`, () => this.server.changes(sessionID, since));
  }

  message(sessionID: string, messageID: string) {
    return this.call(`GET /session/${sessionID}/message/${messageID}`, () =>
      this.server.message(sessionID, messageID),
    );
  }

  prompt(sessionID: string, prompt: Prompt) {
    return this.call(`POST /session/${sessionID}/prompt_async`, () => this.server.prompt(sessionID, prompt));
  }

  releaseDirectory(directory: string) {
    return this.call("POST /instance/dispose", () => this.server.releaseDirectory(directory));
  }

  abort(sessionID: string) {
    return this.call(`POST /session/${sessionID}/abort`, () => this.server.abort(sessionID));
  }

  isWorkingIn(directory: string) {
    return this.call("GET /session/status", () => this.server.isWorkingIn(directory));
  }

  statuses() {
    return this.call("GET /session/status", () => this.server.statuses());
  }

  agents() {
    return this.call("GET /agent", () => this.server.agents());
  }

  models() {
    return this.call("GET /config/providers", () => this.server.models());
  }

  pendingRequests() {
    return this.call("GET /permission", () => this.server.pendingRequests());
  }

  answer(request: PendingRequest, answer: RequestAnswer) {
    return this.call(`POST /${request.type}/${request.id}/reply`, () => this.server.answer(request, answer));
  }

  private async call<T>(name: string, run: () => Promise<T>): Promise<T> {
    const fault = this.faults.shift();
    if (fault === "late") await this.hold(name);
    if (this.isCut || fault === "refused") throw unreachable(name);
    const answer = await run();
    if (fault === "answer-late") await this.hold(name);
    if (this.isCut || fault === "answer-lost") throw unreachable(name);
    return answer;
  }

  private hold(name: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timeout = this.clock.after(CALL_TIMEOUT_MS, () => {
        this.held.delete(goOn);
        reject(unreachable(name));
      });
      const goOn = (): void => {
        this.held.delete(goOn);
        timeout.dispose();
        resolve();
      };
      this.held.add(goOn);
    });
  }
}

function unreachable(name: string): ServerFailure {
  return new ServerFailure(name, "unreachable", `The server could not be reached for ${name}.`);
}
