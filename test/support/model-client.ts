import type { ModelRequest } from "./scripted-model.ts";
import { until } from "./wait.ts";

/** Controls a scripted model that runs in another process. */
export class ModelClient {
  /** @param url the model's base URL, as `ScriptedModel.url` */
  constructor(readonly url: string) {}

  /** The model that the test runner started for this process; throws if there is none. */
  static fromEnv(env: NodeJS.ProcessEnv = process.env): ModelClient {
    const url = env[modelUrlVariable];
    if (!url) throw new Error(`${modelUrlVariable} is not set: start these tests with their runner.`);
    return new ModelClient(url);
  }

  /** All requests so far, oldest first. */
  async requests(): Promise<readonly ModelRequest[]> {
    return (await (await fetch(new URL("/control/requests", this.url))).json()) as ModelRequest[];
  }

  /** Like `ScriptedModel.release`. */
  async release(gate: string): Promise<void> {
    await fetch(new URL("/control/release", this.url), { method: "POST", body: gate });
  }

  /** Like `ScriptedModel.waitForRequest`, but resolves to a copy of the request at that time. */
  async waitForRequest(
    predicate: (request: ModelRequest) => boolean,
    timeoutMs?: number,
  ): Promise<ModelRequest> {
    return await until(
      "a request to the model",
      async () => (await this.requests()).find(predicate),
      timeoutMs,
    );
  }
}

/** The environment variable with the address of a test process's scripted model. */
export const modelUrlVariable = "TEST_MODEL_URL";
