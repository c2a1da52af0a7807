import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { installVsix } from "../../vscode/host.ts";

/** The packaged extension, made when first asked for. */
export const packagedExtension = once(packageExtension);

/** The extensions directory that holds the packaged extension, made when first asked for. */
export const installedExtension = once(() => {
  const extensionsDirectory = tempDir("ext");
  installVsix(packagedExtension(), { userDirectory: tempDir("data"), extensionsDirectory });
  return extensionsDirectory;
});

/** Builds and packages the extension as it is published; `TEST_VSIX` names one that is there already. */
function packageExtension(): string {
  const given = process.env["TEST_VSIX"];
  if (given) return given;
  const vsix = join(tempDir("vsix"), "extension.vsix");
  execFileSync("npm", ["run", "package", "--", "--out", vsix], {
    cwd: repository,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return vsix;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
