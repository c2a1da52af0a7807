import type { ConnectionFailure } from "../engine/connection.ts";

/*
 * Why there is no connection, in words for people: what is the matter, and what they can do.
 */

const INSTALL =
  "Install OpenCode (https://opencode.ai/docs), or set asyncagents.server.path to its executable.";
const SET_URL = "Set asyncagents.server.url to something like http://127.0.0.1:4096, or clear it.";

export const failures = {
  notFound: () => ({
    code: "not-found" as const,
    message: "OpenCode was not found on PATH or in its usual install places.",
    remedy: INSTALL,
  }),

  badPath: (path: string, problem: string) => ({
    code: "bad-path" as const,
    message: `The OpenCode executable "${path}" cannot be used: ${problem}.`,
    remedy:
      "Set asyncagents.server.path to OpenCode's executable, or clear it to have OpenCode searched for.",
  }),

  badUrl: (problem: string) => ({
    code: "bad-url" as const,
    message: `The OpenCode server URL cannot be used: ${problem}.`,
    remedy: SET_URL,
  }),

  startFailed: (problem: string, output = "") => ({
    code: "start-failed" as const,
    message: `OpenCode did not start: ${problem}.${quoted(output)}`,
    remedy: "Run `opencode serve` in a terminal in this folder to see what is wrong, then connect again.",
  }),

  startTimeout: (ms: number, output = "") => ({
    code: "start-timeout" as const,
    message: `OpenCode was not ready within ${Math.round(ms / 1000)} s.${quoted(output)}`,
    remedy: "Connect again, or raise asyncagents.server.startTimeout if this computer is slow.",
  }),

  unreachable: (url: string) => ({
    code: "unreachable" as const,
    message: `No OpenCode server answers at ${url}.`,
    remedy:
      "Start `opencode serve` there, or clear asyncagents.server.url to have a server started for this folder.",
  }),

  lost: () => ({
    code: "unreachable" as const,
    message: "The connection to the OpenCode server of this folder was lost.",
    remedy: "Connect again to start the server anew.",
  }),

  noEvents: (reason: string) => ({
    code: "unreachable" as const,
    message: `OpenCode answers, but its events do not arrive. ${reason}`,
    remedy: "Connect again; if that does not help, restart the server.",
  }),

  refusesFolder: (reason: string) => ({
    code: "start-failed" as const,
    message: `OpenCode runs, but cannot work in this folder: ${reason}.`,
    remedy: "Correct what it complains about (most often its configuration), then connect again.",
  }),

  loadTimeout: (ms: number) => ({
    code: "start-timeout" as const,
    message: `OpenCode runs, but was not ready for this folder within ${Math.round(ms / 1000)} s: it may still be installing what its plugins need.`,
    remedy:
      "Connect again to wait longer; if that does not help, check the network and the plugins in OpenCode's configuration.",
  }),

  notOpenCode: (url: string) => ({
    code: "not-opencode" as const,
    message: `What answers at ${url} is not an OpenCode server.`,
    remedy: SET_URL,
  }),

  wrongPassword: (url: string) => ({
    code: "wrong-password" as const,
    message: `The OpenCode server at ${url} refused the password.`,
    remedy: "Enter the password that the server was started with (OPENCODE_SERVER_PASSWORD).",
  }),

  tooOld: (found: string, needed: string) => ({
    code: "too-old" as const,
    message: `The OpenCode server is version ${found}, but ${needed} or newer is needed.`,
    remedy: "Update OpenCode with `opencode upgrade`, then connect again.",
  }),

  gaveUp: (crashes: number, output = "") => ({
    code: "gave-up" as const,
    message: `OpenCode crashed ${crashes} times in short succession and is not started again.${quoted(output)}`,
    remedy: "Run `opencode serve` in a terminal in this folder to see what is wrong, then connect again.",
  }),
} satisfies Record<string, (...details: never[]) => ConnectionFailure>;

function quoted(output: string): string {
  const text = output.trim();
  return text ? ` It said: ${text}` : "";
}
