import * as vscode from "vscode";
import { Emitter, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Logger } from "../engine/ports.ts";
import type { DaemonClient } from "../rpc/daemon-client.ts";
import { showError } from "./messages.ts";

type Daemon = Pick<DaemonClient, "state" | "onDidChangeState" | "restart">;

/** Notifies the user that the daemon isn't responding, and offers to restart it. */
export class DaemonTrouble implements Disposable {
  private isOffered = false;
  private readonly subscription: Disposable;
  private readonly changes: Emitter<void>;
  readonly onDidChange: Event<void>;

  constructor(
    private readonly daemon: Daemon,
    private readonly logger: Logger,
  ) {
    this.changes = new Emitter(logged(logger, "the daemon"));
    this.onDidChange = this.changes.event;
    this.subscription = daemon.onDidChangeState(() => {
      this.changes.fire();
      if (this.isSilent && !this.isOffered) void this.offerRestart();
    });
  }

  /** The problem in words; undefined if there is none. */
  get message(): string | undefined {
    return this.isSilent
      ? vscode.l10n.t(
          "The background process of Async Agents isn't responding. The tasks may be out of date.",
        )
      : undefined;
  }

  dispose(): void {
    this.subscription.dispose();
    this.changes.dispose();
  }

  private get isSilent(): boolean {
    return this.daemon.state.kind === "silent";
  }

  private async offerRestart(): Promise<void> {
    this.isOffered = true;
    try {
      const restart = vscode.l10n.t("Restart");
      // On Windows, a server ends with the daemon that started it.
      const text = vscode.l10n.t(
        "The background process of Async Agents isn't responding. Restarting it interrupts no agents, except on Windows.",
      );
      // An error notification stays until the user responds; a warning would hide, along with its button.
      const answer = await vscode.window.showErrorMessage(text, restart);
      // By now the daemon may respond again, or another window may have restarted it.
      if (answer === restart && this.isSilent) await this.daemon.restart();
    } catch (error) {
      await showError(error, this.logger);
    } finally {
      this.isOffered = false;
    }
  }
}
