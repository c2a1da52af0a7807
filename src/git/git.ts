import { spawn, type ChildProcess } from "node:child_process";
import { dirname } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";

export interface GitOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal | undefined;
  /** Exit codes besides 0 that are answers rather than errors. */
  readonly accept?: readonly number[];
}

export interface GitAnswer {
  readonly code: number;
  readonly stdout: Buffer;
}

/** Git failed. Its text for users says why. */
export class GitError extends UserFacingError {
  override readonly name = "GitError";

  constructor(
    text: Text,
    /** What Git wrote to its error output. Empty if it could not be started. */
    readonly stderr: string,
  ) {
    super(text);
  }
}

/** How long the paths of one command may be together, in characters: Windows allows 32,767 for all of it. */
const MAX_ARGUMENTS = 24_000;
const MAX_OUTPUT = 512 * 1024 * 1024;
const MAX_ERROR_OUTPUT = 64 * 1024;

/** Nothing of the repository or the user's configuration may run, ask or convert beyond what these commands are for. */
const CONFIGURATION = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.quotePath=false",
  // Fails for files with mixed line endings, which are committed as they would be without it.
  "core.safecrlf=false",
  "log.showSignature=false",
  "gc.auto=0",
  "maintenance.auto=false",
].flatMap((setting) => ["-c", setting]);

/** Variables starting with `GIT_` that choose a program, a configuration or how to connect, not a repository. */
const KEPT_VARIABLES = /^GIT_(CONFIG_|EXEC_PATH$|SSL_|SSH)/;

/** Runs Git in the directory and returns what it printed. Throws a {@link GitError} if it fails. */
export async function git(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  return (await askGit(directory, args, options)).stdout;
}

/** Like {@link git}; the output as text, without the line break at its end. */
export async function gitText(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<string> {
  return withoutLineBreak((await git(directory, args, options)).toString());
}

/** Like {@link git}, for commands that answer with their exit code, too. */
export async function askGit(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<GitAnswer> {
  const { signal, accept = [] } = options;
  signal?.throwIfAborted();
  const { code, stdout, stderr, isTooLong } = await run(directory, args, options);
  signal?.throwIfAborted();
  if (isTooLong)
    throw new GitError(sentence("Git's output is too long to read (git {0}).", nameOf(args)), "");
  if (code === 0 || (code !== undefined && accept.includes(code))) return { code, stdout };
  throw new GitError(reason(args, stderr), stderr);
}

/** Like {@link git}, for paths that can be too many for one command line: the outputs follow one another. */
export async function gitForPaths(
  directory: string,
  args: readonly string[],
  paths: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  const outputs: Buffer[] = [];
  for (const some of inBatches(paths))
    outputs.push((await askGit(directory, [...args, "--", ...some], options)).stdout);
  return Buffer.concat(outputs);
}

function inBatches(paths: readonly string[]): readonly (readonly string[])[] {
  const batches: string[][] = [];
  let room = 0;
  for (const path of paths) {
    room -= path.length + 1;
    if (room < 0) {
      batches.push([]);
      room = MAX_ARGUMENTS - path.length;
    }
    batches.at(-1)?.push(path);
  }
  return batches;
}

/** The parts of an output that was requested with `-z`. */
export function parts(output: Buffer, encoding: "utf8" | "latin1" = "utf8"): string[] {
  const text = output.toString(encoding);
  return text === "" ? [] : (text.endsWith("\0") ? text.slice(0, -1) : text).split("\0");
}

export function withoutLineBreak(text: string): string {
  return text.replace(/\r?\n$/, "");
}

interface Ended {
  /** Undefined if a signal ended the process. */
  readonly code: number | undefined;
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly isTooLong: boolean;
}

/** Settles once the process has ended, also after the signal was aborted. */
function run(directory: string, args: readonly string[], { env, input, signal }: GitOptions): Promise<Ended> {
  // Windows looks for programs in the working directory first, so that must not be one with files of a repository. Elsewhere,
  // the folder of the running program can be gone, such as after an update of the editor.
  const cwd = process.platform === "win32" ? dirname(process.execPath) : "/";
  const child: ChildProcess = spawn("git", [...CONFIGURATION, "-C", directory, ...args], {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: "pipe",
    windowsHide: true,
    ...(signal && { signal }),
  });
  const output: Buffer[] = [];
  let length = 0;
  let stderr = "";
  // It has no streams if too many files are open for it to be started.
  child.stdout?.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_OUTPUT) child.kill();
    else output.push(chunk);
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-MAX_ERROR_OUTPUT);
  });
  // Git may end before it has read everything; its exit code says whether that is an error.
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      if (child.pid === undefined) reject(new GitError(notStarted(error), ""));
    });
    child.once("close", (code) =>
      resolve({
        code: code ?? undefined,
        stdout: Buffer.concat(output),
        stderr,
        isTooLong: length > MAX_OUTPUT,
      }),
    );
  });
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("GIT_") || KEPT_VARIABLES.test(name),
  );
  return {
    ...Object.fromEntries(kept),
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_LITERAL_PATHSPECS: "1",
    GIT_EDITOR: "true",
  };
}

function notStarted(error: Error): Text {
  return (error as NodeJS.ErrnoException).code === "ENOENT"
    ? sentence("Git isn't installed or isn't on PATH. Install Git 2.38 or later, then try again.")
    : sentence("Git couldn't be started: {0}", error.message);
}

function reason(args: readonly string[], stderr: string): Text {
  if (/index\.lock': File exists/.test(stderr))
    return sentence(
      "Another Git command is running in the repository. Wait until it ends, then try again. If none is running, delete index.lock in its .git folder.",
    );
  if (/dubious ownership/.test(stderr))
    return sentence(
      "The repository belongs to another user, so Git doesn't use it. Add it to safe.directory in your Git configuration, then try again.",
    );
  const unreadable = /open\("(.+)"\): Permission denied/.exec(stderr)?.[1];
  if (unreadable !== undefined)
    return sentence(
      "Git isn't allowed to read {0}. Make it readable or, if it isn't tracked, have Git ignore it, then try again.",
      unreadable,
    );
  if (/no space left on device/i.test(stderr))
    return sentence("There is no space left on the disk. Free some, then try again.");
  return sentence("Git failed (git {0}): {1}", nameOf(args), lastError(stderr));
}

function nameOf(args: readonly string[]): string {
  return args.find((arg) => !arg.startsWith("-")) ?? "";
}

/** The most telling line of Git's error output. */
function lastError(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const line = lines.find((one) => /^(fatal|error): /.test(one)) ?? lines.at(-1) ?? "";
  return line.replace(/^(fatal|error): /, "");
}

/** Whether a setting of Git is on. */
export async function setting(
  root: string,
  name: string,
  { otherwise = false, signal }: { readonly otherwise?: boolean; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const value = await gitText(root, ["config", "--type=bool", `--default=${otherwise}`, "--get", name], {
    signal,
  });
  return value === "true";
}
