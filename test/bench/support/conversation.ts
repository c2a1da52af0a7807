import type { Message, Part } from "../../../src/engine/server-model.ts";

/** The lengths of an answer's text and of its call's result, in characters. */
interface Lengths {
  readonly textLength: number;
  readonly resultLength: number;
}

/** Turns of a prompt and three answers with one call each, with this many bytes of JSON in all. */
export function conversation(total: number, size: Lengths): Message[] {
  const messages: Message[] = [];
  for (let bytes = 0; bytes < total;) {
    const isPrompt = messages.length % 4 === 0;
    const message = isPrompt ? prompt(messages.length) : answer(messages.length, size);
    bytes += JSON.stringify(message).length;
    messages.push(message);
  }
  return messages;
}

function prompt(index: number): Message {
  const id = `msg_${index}`;
  return {
    info: { role: "user", id, sessionID: "ses_source", created: index, agent: "build" },
    parts: [textPart(id, "Look at the next file and say what is wrong with it. ".repeat(4))],
  };
}

function answer(index: number, size: Lengths): Message {
  const id = `msg_${index}`;
  const place = { sessionID: "ses_source", messageID: id };
  return {
    info: {
      role: "assistant",
      id,
      sessionID: "ses_source",
      parentID: `msg_${index - (index % 4)}`,
      created: index,
      completed: index,
      agent: "build",
      model: { providerID: "fake", modelID: "m" },
      finish: "tools",
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
      summary: false,
    },
    parts: [
      { ...place, id: `prt_${index}_0`, type: "other", kind: "step-start" },
      textPart(
        id,
        filled("The error is thrown in its first function – “naïve” — so I go on. ", size.textLength),
      ),
      {
        ...place,
        id: `prt_${index}_2`,
        type: "tool",
        tool: "read",
        callID: `call_${index}`,
        state: {
          status: "completed",
          input: { filePath: `/workspace/src/part-${index}.ts`, offset: index, limit: 400 },
          output: filled('  const value = read("key"); // the same again\n', size.resultLength),
          title: `part-${index}.ts`,
          start: index,
          end: index,
        },
      },
      { ...place, id: `prt_${index}_3`, type: "other", kind: "step-finish" },
    ],
  };
}

function textPart(messageID: string, text: string): Part {
  return {
    id: `${messageID}_text`,
    sessionID: "ses_source",
    messageID,
    type: "text",
    text,
    synthetic: false,
  };
}

function filled(words: string, length: number): string {
  return words.repeat(Math.ceil(length / words.length)).slice(0, length);
}
