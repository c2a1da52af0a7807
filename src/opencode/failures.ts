import type { ConnectionFailure } from "../engine/connection.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { MINIMUM_VERSION, TESTED_VERSIONS } from "./versions.ts";

/* Why there is no connection, in texts for users: what happened, and what they can do. */

const INSTALL = sentence(
  "Install OpenCode (https://opencode.ai/docs), or set asyncagents.server.path to its executable.",
);
const SET_URL = sentence(
  "Set asyncagents.server.url to an address such as http://127.0.0.1:4096, or clear it.",
);
const RUN_IT = sentence(
  "Run `opencode serve` in a terminal in this folder to see the problem, then connect again.",
);

export const failures = {
  notFound: () => ({
    code: "not-found" as const,
    message: sentence("OpenCode wasn't found on PATH or in the usual locations."),
    remedy: INSTALL,
  }),

  badPath: (path: string, problem: Text) => ({
    code: "bad-path" as const,
    message: sentence('Can\'t use the OpenCode executable "{0}": {1}.', path, problem),
    remedy: sentence(
      "Set asyncagents.server.path to the OpenCode executable, or clear it to search the usual locations.",
    ),
  }),

  badUrl: (problem: Text) => ({
    code: "bad-url" as const,
    message: sentence("Can't use the OpenCode server address: {0}.", problem),
    remedy: SET_URL,
  }),

  startFailed: (problem: Text, output = "") => ({
    code: "start-failed" as const,
    message: sentence("OpenCode didn't start: {0}.{1}", problem, quoted(output)),
    remedy: RUN_IT,
  }),

  startTimeout: (ms: number, output = "") => ({
    code: "start-timeout" as const,
    message: sentence("OpenCode wasn't ready within {0} s.{1}", Math.round(ms / 1000), quoted(output)),
    remedy: sentence("Connect again, or increase asyncagents.server.startTimeout if this computer is slow."),
  }),

  unreachable: (url: string) => ({
    code: "unreachable" as const,
    message: sentence("No OpenCode server responds at {0}.", url),
    remedy: sentence(
      "Start `opencode serve` there, or clear asyncagents.server.url to start a server for this folder.",
    ),
  }),

  /** Of a server that the extension started. */
  silent: (url: string) => ({
    code: "unreachable" as const,
    message: sentence("No OpenCode server responds at {0}.", url),
    remedy: sentence("Connect again. If that doesn't help, restart the server."),
  }),

  lost: () => ({
    code: "unreachable" as const,
    message: sentence("The connection to the OpenCode server of this folder was lost."),
    remedy: sentence("Connect again to restart the server."),
  }),

  noEvents: (reason: Text) => ({
    code: "unreachable" as const,
    message: sentence("OpenCode responds, but sends no events. {0}", reason),
    remedy: sentence("Connect again. If that doesn't help, restart the server."),
  }),

  refusesFolder: (reason: string) => ({
    code: "folder-refused" as const,
    message: sentence("OpenCode can't work in this folder: {0}.", reason),
    remedy: sentence(
      "Fix the problem it reports (usually in its configuration), then connect again. If that doesn't help, restart the server.",
    ),
  }),

  failsInFolder: (reason: string) => ({
    code: "start-failed" as const,
    message: sentence("OpenCode can't work in this folder: {0}.", reason),
    remedy: sentence("Connect again. If that doesn't help, restart the server."),
  }),

  loadTimeout: (ms: number) => ({
    code: "start-timeout" as const,
    message: sentence(
      "OpenCode is running, but wasn't ready for this folder within {0} s. It may still be installing its plugins.",
      Math.round(ms / 1000),
    ),
    remedy: sentence(
      "Connect again to wait longer. If that doesn't help, check the network and the plugins in OpenCode's configuration.",
    ),
  }),

  notOpenCode: (url: string) => ({
    code: "not-opencode" as const,
    message: sentence("The server at {0} isn't OpenCode.", url),
    remedy: SET_URL,
  }),

  wrongPassword: (url: string) => ({
    code: "wrong-password" as const,
    message: sentence("The server at {0} rejected the password.", url),
    remedy: sentence("Enter the server's password (OPENCODE_SERVER_PASSWORD)."),
  }),

  tooOld: (found: string) => ({
    code: "too-old" as const,
    message: sentence(
      "OpenCode {0} is too old for Async Agents, which requires {1} or later.",
      found,
      MINIMUM_VERSION,
    ),
    remedy: sentence(
      "Update OpenCode with `opencode upgrade {0}`, then connect again.",
      TESTED_VERSIONS.newest,
    ),
  }),

  tooNew: (found: string) => ({
    code: "too-new" as const,
    message: sentence(
      "OpenCode {0} is installed, but Async Agents works with OpenCode 1 ({1} or later).",
      found,
      MINIMUM_VERSION,
    ),
    remedy: sentence(
      "Set up OpenCode 1 next to it, or set asyncagents.server.path to an executable of OpenCode 1.",
    ),
  }),

  serverTooNew: (url: string, found: string) => ({
    code: "server-too-new" as const,
    message: sentence(
      "The server at {0} is OpenCode {1}, but Async Agents works with OpenCode 1 ({2} or later).",
      url,
      found,
      MINIMUM_VERSION,
    ),
    remedy: sentence(
      "Set asyncagents.server.url to a server of OpenCode 1, or clear it to start one for this folder.",
    ),
  }),

  gaveUp: (crashes: number, output = "") => ({
    code: "gave-up" as const,
    message: sentence(
      "OpenCode crashed {0} times in quick succession and isn't restarted.{1}",
      crashes,
      quoted(output),
    ),
    remedy: RUN_IT,
  }),
} satisfies Record<string, (...details: never[]) => ConnectionFailure>;

function quoted(output: string): Text {
  const text = output.trim();
  return text ? sentence(" It said: {0}", text) : "";
}
