import { Worker } from "node:worker_threads";
import { messageOf } from "../engine/errors.ts";
import type { Disposable } from "../engine/event.ts";
import type { CountAnswer, CountRequest } from "./protocol.ts";

interface Waiting {
  readonly resolve: (counts: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

/** One thread that counts tokens, until it is disposed or crashes. */
export class TokenizerThread implements Disposable {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private lastID = 0;
  private end: Error | undefined;

  /** @param script the bundle of `worker.ts`. If it is missing or broken, the first count rejects. */
  constructor(script: string) {
    // Flags of this process, such as for loaders or debuggers, would slow down the thread's start.
    this.worker = new Worker(script, { name: "tokenizer", execArgv: [] });
    this.worker.on("message", (answer: CountAnswer) => this.settle(answer));
    this.worker.on("error", (error) => this.fail(messageOf(error)));
    this.worker.on("exit", (code) => this.fail(`its thread ended with code ${code}`));
  }

  /** Whether the thread has ended. */
  get hasEnded(): boolean {
    return this.end !== undefined;
  }

  /** The number of tokens of each text. Rejects if the thread ends before it answers. */
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

  /** Only the first reason is reported, as a thread that fails also exits. */
  private fail(reason: string): void {
    if (this.end) return;
    this.end = new Error(
      `The tokenizer failed (${reason}). Try again, and install the extension anew if that does not help.`,
    );
    for (const { reject } of this.waiting.values()) reject(this.end);
    this.waiting.clear();
  }
}
