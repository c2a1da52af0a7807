import type { CancelSignal } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import type { DaemonRequests, WindowNotifications } from "./contract.ts";
import { Pulse } from "./pulse.ts";
import type { AnswerOf, ParamsOf, Wire } from "./wire.ts";

export type DaemonWire = Wire<DaemonRequests, WindowNotifications>;

/** The connection of a window to the daemon, after the greeting. */
export class DaemonLink {
  private readonly pulse: Pulse;
  readonly closed: Promise<void>;

  constructor(
    private readonly wire: DaemonWire,
    /** The daemon's process, as long as the connection is open. */
    readonly pid: number,
    clock: Clock,
    onAnswer: (isSilent: boolean) => void,
  ) {
    this.pulse = new Pulse(clock, () => wire.request("ping", []), onAnswer);
    this.closed = wire.closed.then(() => this.pulse.dispose());
  }

  get isOpen(): boolean {
    return this.wire.isOpen;
  }

  /** Rejects with the daemon's error, or with `WireClosed`. */
  request<M extends keyof DaemonRequests>(
    method: M,
    params: ParamsOf<DaemonRequests[M]>,
    signal?: CancelSignal,
  ): Promise<AnswerOf<DaemonRequests[M]>> {
    return this.wire.request(method, params, signal);
  }

  tell<M extends keyof WindowNotifications>(method: M, ...params: ParamsOf<WindowNotifications[M]>): void {
    this.wire.tell(method, ...params);
  }

  close(): void {
    this.wire.close();
  }
}
