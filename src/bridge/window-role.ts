import { realpath } from "node:fs/promises";
import type { TaskEngine } from "../engine/engine.ts";
import type { Disposable } from "../engine/event.ts";
import { ServerFailure, type Clock, type Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import { Serial } from "../engine/serial.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import { createCommandHandler, createWindowCommands } from "./window-commands.ts";
import { WriterElection } from "./writer-election.ts";
import { seatPath } from "./writer-seat.ts";

export interface WindowRoleOptions {
  readonly engine: TaskEngine;
  /** A folder of this user alone. */
  readonly stateFolder: string;
  /** The folder that the agents work in. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** This window's part among all windows on its server: it takes part while it is connected to one. */
export class WindowRole implements Disposable {
  private present: { readonly server: string; readonly election: WriterElection } | undefined;
  /** Joining and leaving take time, and the connection changes meanwhile: one after the other. */
  private readonly changes = new Serial();
  private disposed = false;
  /** The engine's commands, carried out by the window that writes. */
  readonly commands: TaskCommands;

  constructor(private readonly options: WindowRoleOptions) {
    const { engine, clock } = options;
    // Until it is known which window writes, this one does not.
    void engine.setWriting(false);
    this.commands = createWindowCommands(engine, { call: (method, args) => this.call(method, args) }, clock);
  }

  /**
   * Takes part among the windows on a server; resolves when this one's role is known.
   * @param server its address, or one fixed word for the server that is run for the folder
   */
  join(server: string): Promise<void> {
    return this.changes.run(async () => {
      if (this.disposed) return;
      if (this.present?.server !== server) {
        await this.withdraw();
        const election = await this.election(server);
        // It may have been disposed meanwhile.
        if (this.disposed) return election.dispose();
        this.present = { server, election };
      }
      await this.present?.election.start();
    });
  }

  /** Gives the seat up, if it is this window's; another one can take over. */
  leave(): Promise<void> {
    return this.changes.run(() => this.withdraw());
  }

  dispose(): void {
    this.disposed = true;
    this.present?.election.dispose();
    this.present = undefined;
  }

  private async election(server: string): Promise<WriterElection> {
    const { engine, stateFolder, directory, clock, logger } = this.options;
    return new WriterElection({
      seat: seatPath(stateFolder, server, await realpath(directory)),
      handle: createCommandHandler(engine),
      setWriting: (writing) => engine.setWriting(writing),
      clock,
      logger,
    });
  }

  private async withdraw(): Promise<void> {
    const { present } = this;
    this.present = undefined;
    await present?.election.stop();
    present?.election.dispose();
  }

  private call(method: string, args: unknown): Promise<unknown> {
    if (this.present) return this.present.election.call(method, args);
    return Promise.reject(
      new ServerFailure(
        method,
        "unreachable",
        sentence("There is no connection to OpenCode; connect first."),
      ),
    );
  }
}
