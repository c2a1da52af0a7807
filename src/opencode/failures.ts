import type { ConnectionFailure } from "../engine/connection.ts";
import { sentence, type Text } from "../engine/sentence.ts";

/*
 * Why there is no connection, in words for people: what is the matter, and what they can do.
 */

const INSTALL = sentence(
  "Install OpenCode (https://opencode.ai/docs), or set asyncagents.server.path to its executable.",
);
const SET_URL = sentence("Set asyncagents.server.url to something like http://127.0.0.1:4096, or clear it.");
const RUN_IT = sentence(
  "Run `opencode serve` in a terminal in this folder to see what is wrong, then connect again.",
);

export const failures = {
  notFound: () => ({
    code: "not-found" as const,
    message: sentence("OpenCode was not found on PATH or in its usual install places."),
    remedy: INSTALL,
  }),

  badPath: (path: string, problem: Text) => ({
    code: "bad-path" as const,
    message: sentence('The OpenCode executable "{0}" cannot be used: {1}.', path, problem),
    remedy: sentence(
      "Set asyncagents.server.path to OpenCode's executable, or clear it to have OpenCode searched for.",
    ),
  }),

  badUrl: (problem: Text) => ({
    code: "bad-url" as const,
    message: sentence("The OpenCode server URL cannot be used: {0}.", problem),
    remedy: SET_URL,
  }),

  startFailed: (problem: Text, output = "") => ({
    code: "start-failed" as const,
    message: sentence("OpenCode did not start: {0}.{1}", problem, quoted(output)),
    remedy: RUN_IT,
  }),

  startTimeout: (ms: number, output = "") => ({
    code: "start-timeout" as const,
    message: sentence("OpenCode was not ready within {0} s.{1}", Math.round(ms / 1000), quoted(output)),
    remedy: sentence("Connect again, or raise asyncagents.server.startTimeout if this computer is slow."),
  }),

  unreachable: (url: string) => ({
    code: "unreachable" as const,
    message: sentence("No OpenCode server answers at {0}.", url),
    remedy: sentence(
      "Start `opencode serve` there, or clear asyncagents.server.url to have a server started for this folder.",
    ),
  }),

  lost: () => ({
    code: "unreachable" as const,
    message: sentence("The connection to the OpenCode server of this folder was lost."),
    remedy: sentence("Connect again to start the server anew."),
  }),

  noEvents: (reason: Text) => ({
    code: "unreachable" as const,
    message: sentence("OpenCode answers, but its events do not arrive. {0}", reason),
    remedy: sentence("Connect again; if that does not help, restart the server."),
  }),

  refusesFolder: (reason: string) => ({
    code: "start-failed" as const,
    message: sentence("OpenCode runs, but cannot work in this folder: {0}.", reason),
    remedy: sentence("Correct what it complains about (most often its configuration), then connect again."),
  }),

  loadTimeout: (ms: number) => ({
    code: "start-timeout" as const,
    message: sentence(
      "OpenCode runs, but was not ready for this folder within {0} s: it may still be installing what its plugins need.",
      Math.round(ms / 1000),
    ),
    remedy: sentence(
      "Connect again to wait longer; if that does not help, check the network and the plugins in OpenCode's configuration.",
    ),
  }),

  notOpenCode: (url: string) => ({
    code: "not-opencode" as const,
    message: sentence("What answers at {0} is not an OpenCode server.", url),
    remedy: SET_URL,
  }),

  wrongPassword: (url: string) => ({
    code: "wrong-password" as const,
    message: sentence("The OpenCode server at {0} refused the password.", url),
    remedy: sentence("Enter the password that the server was started with (OPENCODE_SERVER_PASSWORD)."),
  }),

  tooOld: (found: string, needed: string) => ({
    code: "too-old" as const,
    message: sentence("The OpenCode server is version {0}, but {1} or newer is needed.", found, needed),
    remedy: sentence("Update OpenCode with `opencode upgrade`, then connect again."),
  }),

  gaveUp: (crashes: number, output = "") => ({
    code: "gave-up" as const,
    message: sentence(
      "OpenCode crashed {0} times in short succession and is not started again.{1}",
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
