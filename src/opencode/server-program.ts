import { createHash } from "node:crypto";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable that names OpenCode's database file. Without it, all versions of OpenCode share one. */
export const DATABASE = "OPENCODE_DB";

/** How a server is started. Folders with the same program share one server. */
export interface ServerProgram {
  /** The path of OpenCode's executable. */
  readonly executable: string;
  /** The complete environment of the server, including its configuration. */
  readonly env: Environment;
}

/** Variables of the editor, terminal or login session, which differ between windows but do not matter to a server. */
const MEANINGLESS = [
  /^(VSCODE|ELECTRON|CHROME|APPLICATION_INSIGHTS|GIO_LAUNCHED|KITTY|ALACRITTY|WEZTERM|KONSOLE|ITERM|TMUX|TERM|WT|XPC|__CF)_/,
  /^(PWD|OLDPWD|SHLVL|_|TERM|COLORTERM|COLUMNS|LINES|TMUX|STY|TTY|WINDOWID|WT_SESSION|ITERM_SESSION_ID)$/,
  /^(SSH_(AUTH_SOCK|CLIENT|CONNECTION|TTY)|GPG_TTY|BROWSER|GIT_ASKPASS|DESKTOP_STARTUP_ID|INVOCATION_ID)$/,
  /^(XDG_(SESSION_ID|ACTIVATION_TOKEN)|JOURNAL_STREAM|SYSTEMD_EXEC_PID|SECURITYSESSIONID|__CFBundleIdentifier)$/,
  /^ORIGINAL_XDG_CURRENT_DESKTOP$/,
  // OpenCode sets these for its child processes, and each server gets its own.
  /^(AGENT|OPENCODE|OPENCODE_PID|OPENCODE_PASSWORD|OPENCODE_SERVER_(USERNAME|PASSWORD))$/,
];

/** A key that is equal for programs that can share a server. Safe for file names. */
export function keyOf({ executable, env }: ServerProgram): string {
  const variables = Object.entries(env)
    .filter(([name, value]) => value !== undefined && !MEANINGLESS.some((pattern) => pattern.test(name)))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([executable, variables]))
    .digest("hex")
    .slice(0, 16);
}
