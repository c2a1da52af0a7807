import { access, constants, readFile, stat } from "node:fs/promises";
import { ConnectionError } from "../engine/connection.ts";
import { locateOpenCode } from "./locate.ts";
import type { FileProbe, LocateOptions } from "./locate.ts";

/** The path of OpenCode's executable on this machine. Throws a `ConnectionError` if there is none that can be used. */
export async function findOpenCode(
  options: Pick<LocateOptions, "configuredPath" | "env" | "home">,
): Promise<string> {
  const located = await locateOpenCode({ ...options, platform: process.platform, files: diskProbe });
  if ("code" in located) throw new ConnectionError(located);
  return located.executable;
}

const diskProbe: FileProbe = {
  async isExecutable(path) {
    try {
      await access(path, constants.X_OK);
      return (await stat(path)).isFile();
    } catch {
      return false;
    }
  },
  exists: (path) =>
    stat(path).then(
      () => true,
      () => false,
    ),
  readText: (path) => readFile(path, "utf8").catch(() => undefined),
};
