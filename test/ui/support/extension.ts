import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { repository } from "../../support/extension-host.ts";
import { tempDir } from "../../support/temp.ts";
import { installVsix } from "../../vscode/host.ts";

/** The packaged extension; made on first use. */
export const packagedExtension = once(packageExtension);

/** An extensions directory with the packaged extension installed; made on first use. */
export const installedExtension = once(() => {
  const extensionsDirectory = tempDir("ext");
  installVsix(packagedExtension(), { userDirectory: tempDir("data"), extensionsDirectory });
  return extensionsDirectory;
});

/** Builds and packages the extension as for publishing; `TEST_VSIX` names an existing package to use instead. */
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
