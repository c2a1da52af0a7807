import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { basicAuthorization } from "../support/opencode.ts";
import { DIALECTS, type Asked, type Call, type Dialect } from "./dialects.ts";
import { redacted, shapeOf } from "./redact.ts";
import { promptOf, SCENES, type Scene } from "./scenes.ts";

/** The server that is recorded. */
export interface Target {
  readonly url: string;
  readonly password: string | undefined;
  /** The folder in which its agents work. */
  readonly directory: string;
  /** Only of a server that was started for the recording, with the scripted model: kills it and starts it again. */
  readonly crash?: () => Promise<void>;
}

export interface RecorderOptions {
  /** The file that is written: one JSON value per line. */
  readonly file: string;
  /** How long a turn may take, in milliseconds. */
  readonly turnMs: number;
  /** How long to wait, after a crash, for events that may never come, in milliseconds. */
  readonly crashMs: number;
}

interface Answer {
  readonly status: number | undefined;
  readonly json: unknown;
}

interface HeardEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Records how a server answers, and the events of a few turns in sessions that it creates for that. */
export class Recorder {
  private readonly places: Record<string, string>;

  constructor(
    private readonly target: Target,
    private readonly options: RecorderOptions,
  ) {
    this.places = { [target.directory]: "FOLDER", [target.url]: "SERVER" };
    if (target.password !== undefined) this.places[target.password] = "REDACTED";
  }

  async record(): Promise<void> {
    const dialect = await this.dialect();
    await this.call({ method: "GET", path: dialect.description });
    for (const path of dialect.routes) await this.call({ method: "GET", path }, shapeOf);
    if (this.target.crash) await this.modelsOf(dialect);
    for (const scene of SCENES)
      if (scene.meanwhile !== "crash" || this.target.crash) await this.play(scene, dialect);
  }

  private async dialect(): Promise<Dialect> {
    const { json } = await this.call({ method: "GET", path: "/api/info" });
    if (json !== undefined) return DIALECTS[2];
    const health = await this.call({ method: "GET", path: "/global/health" });
    if (health.json !== undefined) return DIALECTS[1];
    throw new Error("This is no OpenCode server, or the password is wrong. Set OPENCODE_PASSWORD.");
  }

  /** Waits for the models, which version 2 learns after it has started. */
  private async modelsOf({ models }: Dialect): Promise<void> {
    const until = Date.now() + this.options.turnMs;
    for (;;) {
      const { json } = await this.send({ method: "GET", path: models });
      if (JSON.stringify(json ?? "").includes('"fake"') || Date.now() > until)
        return void (await this.call({ method: "GET", path: models }, shapeOf));
      await delay(250);
    }
  }

  private async play(scene: Scene, dialect: Dialect): Promise<void> {
    this.note({ scene: scene.name });
    const { target } = this;
    const created = (await this.call(dialect.create(target.directory, scene.asks ?? false))).json;
    const sessionID = idOf(created);
    if (sessionID === undefined) return this.note({ note: "No session was created." });
    let stop = new AbortController();
    let { meanwhile } = scene;
    let isOver: (how: string) => void = () => undefined;
    const over = new Promise<string>((resolve) => (isOver = resolve));
    const hear = async ({ type, data }: HeardEvent): Promise<void> => {
      const asked = askedIn(type, data);
      if (asked) await this.call(dialect.answer(sessionID, asked));
      if (meanwhile && dialect.hasBegun(type)) {
        const what = meanwhile;
        meanwhile = undefined;
        if (what === "interrupt") await this.call(dialect.interrupt(sessionID));
        else if (await this.crash(stop)) {
          stop = new AbortController();
          await this.listen(dialect.events, sessionID, stop.signal, hear);
          limit(this.options.crashMs, "Nothing more came after the crash.");
        }
      } else if (dialect.hasEnded(type)) isOver("The turn has ended.");
    };
    const limit = (ms: number, how: string): void => void setTimeout(() => isOver(how), ms).unref();
    await this.listen(dialect.events, sessionID, stop.signal, hear);
    limit(this.options.turnMs, "The turn did not end in time.");
    await this.call(dialect.prompt(sessionID, promptOf(scene, dialect.shell, target.crash !== undefined)));
    const how = await Promise.race([
      over,
      delay(this.options.turnMs + this.options.crashMs, "Nothing came.", { ref: false }),
    ]);
    this.note({ note: how });
    for (const path of dialect.reads(sessionID)) await this.call({ method: "GET", path });
    stop.abort();
  }

  private async crash(stream: AbortController): Promise<boolean> {
    if (!this.target.crash) return false;
    stream.abort();
    await this.target.crash();
    this.note({ note: "The server was killed and started again." });
    return true;
  }

  /** Follows the events of a session. Resolves once the stream is open. */
  private async listen(
    path: string,
    sessionID: string,
    signal: AbortSignal,
    hear: (event: HeardEvent) => Promise<void>,
  ): Promise<void> {
    const response = await this.fetch({ method: "GET", path }, signal);
    const read = async (): Promise<void> => {
      let rest = "";
      const decoder = new TextDecoder();
      for await (const bytes of response.body ?? []) {
        const blocks = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n\r?\n/);
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const event = parsed(block.replaceAll(/^data: ?/gm, "")) as
            { type?: unknown; data?: unknown; properties?: unknown } | undefined;
          if (typeof event?.type !== "string" || !block.includes(sessionID)) continue;
          this.note({ event });
          const data = (event.data ?? event.properties ?? {}) as HeardEvent["data"];
          void hear({ type: event.type, data }).catch((error: unknown) => this.note({ note: String(error) }));
        }
      }
    };
    void read().catch((error: unknown) => {
      if (!signal.aborted) this.note({ note: `The event stream ended: ${String(error)}` });
    });
  }

  /** Makes a call and records it with its answer, or with what `keep` leaves of it. */
  private async call(call: Call, keep = (json: unknown) => json): Promise<Answer> {
    const { type, text, ...answer } = await this.send(call);
    const { status, json } = answer;
    this.note({ call, status, type, answer: json === undefined ? text : keep(json) });
    return answer;
  }

  private async send(call: Call): Promise<Answer & { readonly type?: string; readonly text?: string }> {
    try {
      const response = await this.fetch(call, AbortSignal.timeout(this.options.turnMs));
      const type = response.headers.get("content-type") ?? "";
      const text = await response.text();
      const json = type.includes("json") && response.ok ? parsed(text) : undefined;
      return { status: response.status, json, type, text: text.slice(0, 500) };
    } catch (error) {
      return { status: undefined, json: undefined, text: String(error) };
    }
  }

  private fetch({ method, path, body }: Call, signal: AbortSignal): Promise<Response> {
    const { url, password, directory } = this.target;
    const headers = {
      "x-opencode-directory": encodeURIComponent(directory),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(password !== undefined && { authorization: basicAuthorization(password) }),
    };
    return fetch(url + path, {
      method,
      headers,
      signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  private note(what: object): void {
    appendFileSync(
      this.options.file,
      `${redacted(JSON.stringify({ at: Date.now(), ...what }), this.places)}\n`,
    );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function idOf(answer: unknown): string | undefined {
  const session = (answer as { data?: unknown } | undefined)?.data ?? answer;
  const id = (session as { id?: unknown } | undefined)?.id;
  return typeof id === "string" ? id : undefined;
}

function askedIn(type: string, data: HeardEvent["data"]): Asked | undefined {
  const kinds = {
    "permission.asked": "permission",
    "question.asked": "question",
    "form.created": "question",
  } as const;
  const kind = kinds[type as keyof typeof kinds];
  const id = data["id"] ?? idOf(data["form"] ?? data["request"]);
  return kind && typeof id === "string" ? { kind, id, details: data } : undefined;
}
