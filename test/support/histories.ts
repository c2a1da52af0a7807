import type { Message } from "../../src/engine/server-model.ts";
import { agent, call, inOrder, user } from "../unit/engine/fork/conversation.ts";

/** An image of one pixel. */
export const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** `answers` messages with ten calls each; every result has `chars` characters and starts with its call's ID. */
export function manyResults(answers: number, chars: number): readonly Message[] {
  const messages = Array.from({ length: answers }, (_, at) =>
    agent(
      `a${at}`,
      { finish: "tools" },
      ...Array.from({ length: 10 }, (_, index) => {
        const id = `call_${at}_${index}`;
        return call(id, { output: `${id} `.padEnd(chars, "lorem ipsum ") });
      }),
    ),
  );
  return spoken(user("u", "Read all files."), ...messages, agent("end", {}, "All files are read."));
}

/** `count` messages of `bytes` bytes in total: turns of a prompt and three answers with one call each. */
export function longHistory(count: number, bytes: number): readonly Message[] {
  const size = Math.floor(bytes / count);
  const line = '  const value = read("key"); // looks the same again, “naïve” or not\n';
  return spoken(
    ...Array.from({ length: count }, (_, at) =>
      at % 4 === 0
        ? user(`m${at}`, `Look at part ${at} and say what is wrong with it.`)
        : agent(
            `m${at}`,
            { finish: at % 4 === 3 ? "end" : "tools" },
            `Part ${at} throws in its first function, so I go on.`,
            call(`call_${at}`, { output: line.repeat(Math.ceil((size * 4) / 3 / line.length)) }),
          ),
    ),
  );
}

/** The messages with creation times, one second apart, starting an hour ago. */
export function spoken(...messages: readonly Message[]): readonly Message[] {
  const began = Date.now() - 3_600_000;
  return inOrder(...messages).map(({ info, parts }) => ({
    info: { ...info, created: began + info.created, model: { providerID: "fake", modelID: "m" } },
    parts,
  }));
}

export { agent, call, user };
