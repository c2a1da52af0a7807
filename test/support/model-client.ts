import type { ModelRequest } from "./scripted-model.ts";
import { until } from "./wait.ts";

/** A scripted model that runs in another process, seen from a test. */
export class ModelClient {
  /** @param url the model's base URL, as `ScriptedModel.url` */
  constructor(readonly url: string) {}

  /** The model that the test run started for this process; throws where there is none. */
  static fromEnv(env: NodeJS.ProcessEnv = process.env): ModelClient {
    const url = env[modelUrlVariable];
    if (!url) throw new Error(`${modelUrlVariable} is not set: start these tests with their runner.`);
    return new ModelClient(url);
  }

  /** All requests so far, oldest first. */
  async requests(): Promise<readonly ModelRequest[]> {
    return (await (await fetch(new URL("/control/requests", this.url))).json()) as ModelRequest[];
  }

  /** As `ScriptedModel.release`. */
  async release(gate: string): Promise<void> {
    await fetch(new URL("/control/release", this.url), { method: "POST", body: gate });
  }

  /** As `ScriptedModel.waitForRequest`; the request is a copy of how it was then. */
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

/** The environment variable that tells a test process where its scripted model is. */
export const modelUrlVariable = "TEST_MODEL_URL";
