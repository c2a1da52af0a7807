/**
 * The lowest and the newest release that were tested; see docs/opencode-2.md. The newest one is what the extension
 * installs.
 */
export const TESTED_VERSIONS = { lowest: "1.18.15", newest: "1.18.33" } as const;

/**
 * Earlier releases take a message for answered if its ID sorts before that of an answer. The ID of a notification comes
 * from the end of its task, so a parent that answered something else meanwhile would never read it.
 */
export const MINIMUM_VERSION = TESTED_VERSIONS.lowest;

/** The first major version whose API is a different one. */
const NEXT_MAJOR = 2;

/** `unknown` is a build from source, or a program that does not say what it is. Such a version is tried. */
export type Support = "supported" | "too-old" | "too-new" | "unknown";

export function supportOf(version: string | undefined): Support {
  const [major, minor, patch] = numbersOf(version) ?? [];
  if (major === undefined || version?.includes("0.0.0-")) return "unknown";
  if (major >= NEXT_MAJOR) return "too-new";
  return compareVersions(`${major}.${minor}.${patch}`, MINIMUM_VERSION) < 0 ? "too-old" : "supported";
}

/** Whether the version is of a release line, such as 1.19, that the tests never ran with. Patches do not count. */
export function isUntested(version: string): boolean {
  const [major, minor] = numbersOf(version) ?? [];
  if (supportOf(version) !== "supported") return false;
  return ![TESTED_VERSIONS.lowest, TESTED_VERSIONS.newest].some((tested) =>
    tested.startsWith(`${major}.${minor}.`),
  );
}

/** Negative if the first version is older, positive if it is newer. Versions without numbers count as equal. */
export function compareVersions(one: string, other: string): number {
  const [first, second] = [numbersOf(one), numbersOf(other)];
  if (!first || !second) return 0;
  return first.map((number, index) => number - (second[index] ?? 0)).find((part) => part !== 0) ?? 0;
}

/** The version in what `opencode --version` prints: `1.18.33` in version 1, `opencode v2.3.2` in version 2. */
export function versionIn(output: string): string | undefined {
  return /^(?:opencode2? )?v?(\d+\.\d+\.\d+\S*)\s*$/im.exec(output)?.[1];
}

function numbersOf(version: string | undefined): number[] | undefined {
  return /^v?(\d+)\.(\d+)\.(\d+)/
    .exec(version ?? "")
    ?.slice(1)
    .map(Number);
}
