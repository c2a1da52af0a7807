import type { Socket } from "node:net";
import { textOf } from "../engine/errors.ts";
import { Emitter } from "../engine/event.ts";
import type { Disposable, Event } from "../engine/event.ts";
import { ServerFailure } from "../engine/ports.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { describeError, encodeLine, readMessages, windowRequest } from "./window-protocol.ts";
import type { WindowRequest } from "./window-protocol.ts";
import { WriterLink } from "./writer-link.ts";
import { reachSeat, Seat } from "./writer-seat.ts";

/** After an election that failed, in milliseconds: a full disk or a folder without access does not mend itself soon. */
const RETRY_MS = 1_000;

/** `none`: stopped, or not known yet. */
export type Role = "writer" | "reader" | "none";

export interface WriterElectionOptions {
  /** Where the writer listens; see `seatPath`. */
  readonly seat: string;
  /** Carries out, in the window that writes, what any window calls for. */
  readonly handle: (method: string, args: unknown) => Promise<unknown>;
  /** Waited for: `true` before the first command is carried out, `false` before the seat is given up by `stop`. */
  readonly setWriting: (writing: boolean) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Of several windows on one server and folder, one writes. Each takes part with an election of its own; when the
 * writing window closes or crashes, another one takes over.
 */
export class WriterElection implements Disposable {
  private readonly roles: Emitter<Role>;
  /** Fires with the new role. */
  readonly onDidChangeRole: Event<Role>;
  private current: Role = "none";
  private seat: Seat | undefined;
  private link: WriterLink | undefined;
  private round: AbortController | undefined;
  /** Settles when the present round is decided; undefined while stopped. */
  private elected: Promise<void> | undefined;
  private retry: Disposable | undefined;
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly options: WriterElectionOptions) {
    this.roles = new Emitter((error) => options.logger.error("A listener to the role failed.", error));
    this.onDidChangeRole = this.roles.event;
  }

  get role(): Role {
    return this.current;
  }

  /** Takes part; resolves when the role is known. Where that fails it rejects, and is tried again later. */
  start(): Promise<void> {
    return this.elected ?? this.begin();
  }

  /** Takes part no more: what is being carried out is finished, then another window can take over. */
  async stop(): Promise<void> {
    const { elected, seat, link } = this.withdraw();
    link?.close();
    if (!seat) return;
    await Promise.allSettled([elected, ...this.running]);
    await this.tellWriting(false);
    seat.leave();
  }

  /**
   * Has the writing window carry a command out; waits while there is none. Rejects as the command does, and with
   * `unreachable` where it is not known whether it was carried out, or no window can be chosen.
   */
  async call(method: string, args: unknown): Promise<unknown> {
    for (;;) {
      if (this.current === "writer") return this.track(this.carryOut(method, args));
      if (this.link?.isOpen) return this.link.call(method, args);
      if (this.link) await this.link.closed;
      else if (this.elected) await this.elected.catch((error: unknown) => unavailable(method, textOf(error)));
      else unavailable(method, sentence("this one is not connected"));
    }
  }

  /** As {@link stop}, at once: whatever is being carried out is left to itself. */
  dispose(): void {
    const { seat, link } = this.withdraw();
    link?.close();
    seat?.leave();
    if (seat) void this.tellWriting(false);
    this.roles.dispose();
  }

  private withdraw() {
    const { elected, seat, link } = this;
    this.round?.abort(new Error("this one is not connected any more"));
    this.retry?.dispose();
    this.round = this.elected = this.seat = this.link = undefined;
    this.become("none");
    return { elected, seat, link };
  }

  private begin(): Promise<void> {
    const round = (this.round = new AbortController());
    this.elected = this.elect(round.signal);
    this.elected.catch((error: unknown) => {
      if (round.signal.aborted) return;
      this.options.logger.error("The window that writes could not be chosen.", error);
      this.retry = this.options.clock.after(RETRY_MS, () => void this.begin());
    });
    return this.elected;
  }

  private async elect(signal: AbortSignal): Promise<void> {
    for (;;) {
      const socket = await reachSeat(this.options.seat);
      if (signal.aborted) socket?.destroy();
      signal.throwIfAborted();
      if (socket) return this.follow(new WriterLink(socket));
      const seat = await Seat.take(this.options.seat, (reader) => this.serve(reader));
      if (signal.aborted) seat?.leave();
      signal.throwIfAborted();
      if (!seat) continue;
      this.seat = seat;
      await this.tellWriting(true);
      signal.throwIfAborted();
      return this.become("writer");
    }
  }

  private follow(link: WriterLink): void {
    this.link = link;
    void link.closed.then(() => {
      if (this.link !== link) return;
      this.link = undefined;
      this.become("none");
      void this.begin();
    });
    this.become("reader");
  }

  private serve(reader: Socket): void {
    reader.on("error", () => undefined);
    readMessages(reader, windowRequest, (request) => void this.track(this.respond(reader, request)));
  }

  private async respond(reader: Socket, { id, method, args }: WindowRequest): Promise<void> {
    let line: string;
    try {
      line = encodeLine({ id, result: await this.carryOut(method, args) });
    } catch (error) {
      line = encodeLine({ id, failure: describeError(error) });
    }
    if (reader.writable) reader.write(line);
  }

  private async carryOut(method: string, args: unknown): Promise<unknown> {
    // The seat is taken before the window is ready to write.
    if (this.current !== "writer") await this.elected;
    if (this.current !== "writer") unavailable(method, sentence("the one that wrote is closing"));
    return this.options.handle(method, args);
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.running.add(work);
    return work.finally(() => this.running.delete(work));
  }

  private async tellWriting(writing: boolean): Promise<void> {
    try {
      await this.options.setWriting(writing);
    } catch (error) {
      this.options.logger.error("What was left undone could not be taken up.", error);
    }
  }

  private become(role: Role): void {
    if (role === this.current) return;
    this.current = role;
    this.options.logger.info(`This window's role: ${role}.`);
    this.roles.fire(role);
  }
}

function unavailable(method: string, why: Text): never {
  throw new ServerFailure(
    method,
    "unreachable",
    sentence("No window can carry this out now: {0}. Try again.", why),
  );
}
