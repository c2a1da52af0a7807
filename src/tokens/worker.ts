import { parentPort } from "node:worker_threads";
import type { CountAnswer, CountRequest } from "./protocol.ts";
import { TextTokens } from "./text-tokens.ts";
import { loadVocabulary } from "./vocabulary.ts";

const tokens = new TextTokens(loadVocabulary());

parentPort?.on("message", ({ id, texts }: CountRequest) => {
  const answer: CountAnswer = { id, counts: texts.map((text) => tokens.count(text)) };
  parentPort?.postMessage(answer);
});
