import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../engine/errors.ts";
import { Emitter, type Event } from "../engine/event.ts";
import type { Logger } from "../engine/ports.ts";
import type { LogLine } from "../rpc/contract.ts";

const MAX_BYTES = 5_000_000;

/**
 * Writes to `daemon.log`, and emits each line. One older file is kept beside it. Lines are written synchronously, so
 * that the last ones before a crash are there. Failures to write are ignored.
 */
export class LogFile implements Logger {
  private readonly path: string;
  private file: number | undefined;
  private bytes = 0;
  private readonly lines = new Emitter<LogLine>(() => undefined);
  /** Lines of every level. Debug lines are emitted but not written to the file. */
  readonly onLine: Event<LogLine> = this.lines.event;

  constructor(
    folder: string,
    private readonly now: () => number,
    private readonly maxBytes = MAX_BYTES,
  ) {
    this.path = join(folder, "daemon.log");
  }

  debug(message: string): void {
    this.lines.fire({ level: "debug", message });
  }

  info(message: string): void {
    this.log("info", message);
  }

  warn(message: string): void {
    this.log("warn", message);
  }

  error(message: string, error?: unknown): void {
    this.log("error", error === undefined ? message : `${message} ${detail(error)}`);
  }

  private log(level: LogLine["level"], message: string): void {
    try {
      this.write(`${new Date(this.now()).toISOString()} [${level}] ${message}\n`);
    } catch {
      this.close();
    }
    this.lines.fire({ level, message });
  }

  private write(line: string): void {
    if (this.bytes > this.maxBytes) {
      this.close();
      renameSync(this.path, `${this.path}.1`);
    }
    this.file ??= this.open();
    this.bytes += writeSync(this.file, line);
  }

  private open(): number {
    const file = openSync(this.path, "a", 0o600);
    this.bytes = fstatSync(file).size;
    return file;
  }

  private close(): void {
    const { file } = this;
    this.file = undefined;
    this.bytes = 0;
    if (file !== undefined) closeSync(file);
  }
}

function detail(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
}
