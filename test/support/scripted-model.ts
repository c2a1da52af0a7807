import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text as readText } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { lastUserText, messageText, scriptedStep, type ModelMessage, type ScriptStep } from "./script.ts";

export { lastUserText, messageText, script, type ModelMessage, type ScriptStep } from "./script.ts";

/** A request to the model. The object is live: `aborted` and `finished` change. */
export interface ModelRequest {
  /** Zero-based. */
  readonly index: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly messages: readonly ModelMessage[];
  /** The whole request body in the OpenAI protocol. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The OpenCode session that makes the request, according to the server. */
  readonly sessionID: string | undefined;
  /** The requested model, without its provider. */
  readonly model: string;
  /** Whether it asks for a session's title instead of an answer. */
  readonly title: boolean;
  /** The answer. */
  readonly step: ScriptStep;
  /** Whether the client disconnected before the answer was complete. */
  readonly aborted: boolean;
  /** Whether the answer was sent completely. */
  readonly finished: boolean;
}

export interface ScriptedModelOptions {
  /** Answers requests without a script. Default: `ok: ` and the first 40 characters of the last user message. */
  readonly fallback?: (request: Omit<ModelRequest, "step">) => ScriptStep;
}

/**
 * A model that answers as its prompts say (see {@link ScriptStep} and `script`). Also serves `ModelClient`, so that a
 * test in another process can watch and release it.
 */
export interface ScriptedModel {
  /** The base URL for an OpenAI-compatible provider; ends in `/v1`. */
  readonly url: string;
  /** All requests so far, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Releases the answers held at this gate, including those that reach it later. */
  release(gate: string): void;
  /** The first matching request, past or future. Rejects after `timeoutMs` (default 40,000). */
  waitForRequest(predicate: (request: ModelRequest) => boolean, timeoutMs?: number): Promise<ModelRequest>;
  /** Cuts all connections. */
  stop(): Promise<void>;
}

/** The title for all sessions. */
const scriptedTitle = "Scripted title";

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  const model = new Model(options.fallback ?? echo);
  const server = createServer((request, response) => void model.serve(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests: model.requests,
    release: (gate) => model.release(gate),
    waitForRequest: (predicate, timeoutMs) => model.waitForRequest(predicate, timeoutMs),
    async stop() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, "close");
    },
  };
}

function echo({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  return { text: `ok: ${lastUserText(messages).slice(0, 40)}` };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

class Model {
  readonly requests: Mutable<ModelRequest>[] = [];
  private readonly gates = new Map<string, Gate>();
  /** The number of error answers, by the messages that they answered. */
  private readonly refusals = new Map<string, number>();
  private readonly waiting = new Set<(request: ModelRequest) => void>();

  constructor(private readonly fallback: NonNullable<ScriptedModelOptions["fallback"]>) {}

  release(name: string): void {
    this.gate(name).open();
  }

  waitForRequest(predicate: (request: ModelRequest) => boolean, timeoutMs = 40_000): Promise<ModelRequest> {
    const found = this.requests.find(predicate);
    if (found) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const check = (request: ModelRequest): void => {
        if (!predicate(request)) return;
        this.waiting.delete(check);
        clearTimeout(timer);
        resolve(request);
      };
      const timer = setTimeout(() => {
        this.waiting.delete(check);
        const seen = this.requests.map(({ messages }) => lastUserText(messages).slice(0, 80));
        const list = seen.map((text) => `\n  ${JSON.stringify(text)}`).join("");
        reject(new Error(`No such request to the model within ${timeoutMs} ms. Seen: ${seen.length}${list}`));
      }, timeoutMs);
      this.waiting.add(check);
    });
  }

  async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? "/";
    if (path.startsWith("/control/")) return await this.control(path, incoming, response);
    if (path !== "/v1/chat/completions") return void response.writeHead(404).end();
    const request = this.take((await json(incoming)) as Record<string, unknown>, incoming);
    response.on("close", () => {
      request.finished = response.writableFinished;
      request.aborted = !response.writableFinished && !request.step.drop;
    });
    for (const check of [...this.waiting]) check(request);
    await this.answer(request, response);
  }

  /** Serves `ModelClient`. */
  private async control(path: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path === "/control/release") {
      this.release(await readText(incoming));
      response.writeHead(204).end();
    } else {
      response.setHeader("content-type", "application/json").end(JSON.stringify(this.requests));
    }
  }

  private take(body: Record<string, unknown>, { headers }: IncomingMessage): Mutable<ModelRequest> {
    const messages = (body["messages"] ?? []) as ModelMessage[];
    const title = messages.some((one) => one.role === "system" && /title generator/i.test(messageText(one)));
    const facts = {
      index: this.requests.length,
      at: Date.now(),
      messages,
      body,
      headers,
      sessionID: headers["x-session-id"]?.toString(),
      model: String(body["model"]),
      title,
      aborted: false,
      finished: false,
    };
    const step = title ? { text: scriptedTitle } : (scriptedStep(messages) ?? this.fallback(facts));
    const request = { ...facts, step };
    this.requests.push(request);
    return request;
  }

  private async answer(request: ModelRequest, response: ServerResponse): Promise<void> {
    const { step } = request;
    if (step.hang) return;
    if (step.status !== undefined && this.refuses(request)) {
      response.writeHead(step.status, { "content-type": "application/json", ...step.headers });
      response.end(JSON.stringify(step.body ?? { error: { message: `scripted error ${step.status}` } }));
      return;
    }
    if (request.body["stream"] === true) await this.stream(request, response);
    else answerAtOnce(request, response);
  }

  private refuses({ step, messages, model }: ModelRequest): boolean {
    const key = JSON.stringify([model, messages]);
    const count = (this.refusals.get(key) ?? 0) + 1;
    this.refusals.set(key, count);
    return step.times === undefined || count <= step.times;
  }

  private async stream(request: ModelRequest, response: ServerResponse): Promise<void> {
    const { step } = request;
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const send = (data: unknown): void => void response.write(`data: ${JSON.stringify(data)}\n\n`);
    const delta = (change: unknown, finish: string | null = null): void =>
      send({ ...frame(request), choices: [{ index: 0, delta: change, finish_reason: finish }] });
    // Yields to the event loop even without a gap, so that the client can abort in between.
    const pause = async (): Promise<void> =>
      void (await delay(step.gap ?? 0, undefined, { signal: gone.signal }));
    const held = async (): Promise<void> => {
      if (step.gate !== undefined) await this.gate(step.gate).passed(gone.signal);
    };

    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    try {
      if (!step.gateAfterText && !step.gateInCall) await held();
      delta({ role: "assistant", content: "" });
      for (const word of words(step.reasoning)) {
        delta({ reasoning_content: word });
        if (step.gap) await pause();
      }
      for (const word of words(step.text)) {
        delta({ content: word });
        if (step.gap) await pause();
      }
      for (let chunk = 0; chunk < (step.chunks ?? 0); chunk++) {
        delta({ content: `w${chunk} `.padEnd(step.size ?? 6, "x") });
        if (step.gap || chunk % 50 === 0) await pause();
      }
      if (step.gateAfterText) await held();
      if (step.drop) return void response.destroy();
      for (const [index, call] of (step.tools ?? []).entries()) {
        const id = `call_${request.index}_${index}`;
        const args = JSON.stringify(call.args ?? {});
        delta({
          tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: "" } }],
        });
        if (step.gateInCall && index === 0) await held();
        for (let at = 0; at < args.length; at += 20)
          delta({ tool_calls: [{ index, function: { arguments: args.slice(at, at + 20) } }] });
      }
      delta({}, step.finish ?? (step.tools ? "tool_calls" : "stop"));
      send({ ...frame(request), choices: [], usage: usage(request) });
      response.end("data: [DONE]\n\n");
    } catch (error) {
      if (gone.signal.aborted) return;
      throw error;
    }
  }

  private gate(name: string): Gate {
    const gate = this.gates.get(name) ?? new Gate();
    this.gates.set(name, gate);
    return gate;
  }
}

/** Closed until it is opened; then stays open. */
class Gate {
  private readonly opened = new AbortController();

  open(): void {
    this.opened.abort();
  }

  /** Resolves when the gate is open; rejects if `signal` aborts first. */
  async passed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.opened.signal.aborted) return;
    const first = AbortSignal.any([this.opened.signal, signal]);
    await once(first, "abort");
    if (!this.opened.signal.aborted) signal.throwIfAborted();
  }
}

function answerAtOnce(request: ModelRequest, response: ServerResponse): void {
  const message = { role: "assistant", content: request.step.text ?? "" };
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({
      ...frame(request),
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage: usage(request),
    }),
  );
}

function frame({ index, at, model }: ModelRequest): Record<string, unknown> {
  return { id: `chatcmpl-${index}`, object: "chat.completion.chunk", created: Math.floor(at / 1000), model };
}

function usage({ body, step }: ModelRequest): Record<string, unknown> {
  const prompt = Math.ceil(JSON.stringify(body).length / 4);
  return { prompt_tokens: prompt, completion_tokens: 5, total_tokens: prompt + 5, ...step.usage };
}

function words(text = ""): string[] {
  return text === "" ? [] : text.split(/(?<=\s)/);
}
