import { Worker } from "node:worker_threads";
import { messageOf } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import type { CountAnswer, CountRequest } from "./protocol.ts";

interface Waiting {
  readonly resolve: (counts: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

/** The thread that counts, from its start to its end, which may be a crash. */
export class TokenizerThread implements Disposable {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private lastID = 0;
  private end: Error | undefined;

  /** @param script the bundle of `worker.ts`; where it is missing or broken, the first count rejects */
  constructor(script: string) {
    // The flags of this process are not meant for the thread: a loader or a debugger would slow its start.
    this.worker = new Worker(script, { name: "tokenizer", execArgv: [] });
    this.worker.on("message", (answer: CountAnswer) => this.settle(answer));
    this.worker.on("error", (error) => this.fail(messageOf(error)));
    this.worker.on("exit", (code) => this.fail(`its thread ended with code ${code}`));
  }

  /** Whether it counts no more. */
  get hasEnded(): boolean {
    return this.end !== undefined;
  }

  /** The number of tokens of each text. Rejects when the thread ends before it answers. */
  count(texts: readonly string[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      if (this.end) return reject(this.end);
      const request: CountRequest = { id: ++this.lastID, texts };
      this.waiting.set(request.id, { resolve, reject });
      this.worker.postMessage(request);
    });
  }

  dispose(): void {
    this.fail("it was stopped");
    void this.worker.terminate();
  }

  private settle({ id, counts }: CountAnswer): void {
    this.waiting.get(id)?.resolve(counts);
    this.waiting.delete(id);
  }

  /** The first reason counts: a thread that fails exits too. */
  private fail(reason: string): void {
    if (this.end) return;
    this.end = new Error(
      `The tokenizer failed (${reason}). Try again, and install the extension anew if that does not help.`,
    );
    for (const { reject } of this.waiting.values()) reject(this.end);
    this.waiting.clear();
  }
}
