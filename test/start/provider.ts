import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The variables with the usual providers' keys. */
const keyVariables = [
  "ANTHROPIC",
  "OPENAI",
  "GEMINI",
  "GOOGLE_GENERATIVE_AI",
  "OPENROUTER",
  "GROQ",
  "MISTRAL",
  "XAI",
]
  .map((name) => `${name}_API_KEY`)
  .concat("AWS_BEARER_TOKEN_BEDROCK", "OPENCODE_API_KEY");

/**
 * Whether the user's OpenCode has a model to run with, as far as can be told without running it: a login, a key in the
 * environment, or a provider in a configuration file.
 */
export function hasProvider(env: NodeJS.ProcessEnv = process.env): boolean {
  const data = env["XDG_DATA_HOME"] ?? join(homedir(), ".local", "share");
  const config = env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config");
  const files = ["opencode.json", "opencode.jsonc", "config.json"].map((name) =>
    join(config, "opencode", name),
  );
  return (
    hasLogin(join(data, "opencode", "auth.json")) ||
    keyVariables.some((name) => env[name]) ||
    [...files, env["OPENCODE_CONFIG"]].some((file) => file !== undefined && mentionsProvider(file)) ||
    /"provider"/.test(env["OPENCODE_CONFIG_CONTENT"] ?? "")
  );
}

function hasLogin(file: string): boolean {
  try {
    return Object.keys(JSON.parse(readFileSync(file, "utf8")) as object).length > 0;
  } catch {
    return false;
  }
}

function mentionsProvider(file: string): boolean {
  return existsSync(file) && /"(provider|model)"\s*:/.test(readFileSync(file, "utf8"));
}
