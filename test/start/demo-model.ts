import { lastUserText, type ModelMessage, type ScriptStep } from "../support/scripted-model.ts";

/** Milliseconds between two words: slow enough to be visible, fast enough not to bore. */
const gap = 30;

/** The answers of the demo's model: for a first prompt it reads a file and reports, otherwise it says a few words. */
export function demoAnswer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const asked = messages.findLastIndex((message) => message.role === "user");
  const looked = messages.slice(asked).some((message) => message.role === "tool");
  if (looked) return { reasoning: "The file is short, so a short report will do. ", text: report, gap };
  if (messages.some((message) => message.role === "tool")) return { text: followUp(messages), gap };
  return {
    reasoning: "First I look at the code, then I say what I find. ",
    text: "Let me look at the code first. ",
    tools: [{ name: "read", args: { filePath: "src/greet.js" } }],
    gap,
  };
}

/** OpenCode's configuration for the demo's model. */
export function demoConfig(baseURL: string): Record<string, unknown> {
  return {
    model: "demo/demo",
    small_model: "demo/demo",
    enabled_providers: ["demo"],
    provider: {
      demo: {
        npm: "@ai-sdk/openai-compatible",
        name: "Demo",
        options: { baseURL, apiKey: "none" },
        models: {
          demo: {
            name: "Demo (canned answers)",
            tool_call: true,
            limit: { context: 200_000, output: 8_000 },
          },
        },
      },
    },
  };
}

const report = `## What I found

\`greet\` looks the language up in a table and puts the name behind it. Two things stand out:

| Case | What happens | What I would expect |
|---|---|---|
| an unknown language | \`undefined, Ada!\` | the English greeting |
| a name with spaces around it | kept as it is | trimmed |

A small change settles both:

\`\`\`js
export function greet(name, language = "en") {
  const greeting = greetings[language] ?? greetings.en;
  return \`\${greeting}, \${name.trim()}!\`;
}
\`\`\`

1. Add a test for each row of the table.
2. Make the change.
3. Take both off the list in \`NOTES.md\`.

*This is a canned answer of the demo's model. Set up a provider in OpenCode to have real ones.*
`;

function followUp(messages: readonly ModelMessage[]): string {
  const said = lastUserText(messages).split("\n")[0]?.slice(0, 80) ?? "";
  return `You said: *${said}*\n\nI can only repeat myself, as a model with **canned answers**: see my report above.`;
}
