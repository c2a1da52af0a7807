import type { Clock } from "../engine/ports.ts";
import type { DaemonRequests, WindowNotifications } from "./contract.ts";
import { Pulse } from "./pulse.ts";
import { Wire } from "./wire.ts";

/** The connection of a window to the daemon. */
export class DaemonLink extends Wire<DaemonRequests, WindowNotifications> {
  /** The daemon's process, as long as the connection is open; undefined before the greeting. */
  pid: number | undefined;

  /** Once it has greeted: tells from now on whether it answers. */
  follow(pid: number, clock: Clock, onAnswer: (isSilent: boolean) => void): void {
    this.pid = pid;
    const pulse = new Pulse(clock, () => this.request("ping", []), onAnswer);
    void this.closed.then(() => pulse.dispose());
  }
}
