import { createHash } from "node:crypto";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a server is started from. Folders that agree on it share one server. */
export interface ServerProgram {
  /** OpenCode's. */
  readonly executable: string;
  /** The server's whole environment, the configuration that it is given included. */
  readonly env: Environment;
}

/** Variables that differ from window to window and mean nothing to a server: of the editor, the terminal, the session. */
const MEANINGLESS = [
  /^(VSCODE|ELECTRON|CHROME|APPLICATION_INSIGHTS|GIO_LAUNCHED|KITTY|ALACRITTY|WEZTERM|KONSOLE|ITERM|TMUX|TERM|WT|XPC|__CF)_/,
  /^(PWD|OLDPWD|SHLVL|_|TERM|COLORTERM|COLUMNS|LINES|TMUX|STY|TTY|WINDOWID|WT_SESSION|ITERM_SESSION_ID)$/,
  /^(SSH_(AUTH_SOCK|CLIENT|CONNECTION|TTY)|GPG_TTY|BROWSER|GIT_ASKPASS|DESKTOP_STARTUP_ID|INVOCATION_ID)$/,
  /^(XDG_(SESSION_ID|ACTIVATION_TOKEN)|JOURNAL_STREAM|SYSTEMD_EXEC_PID|SECURITYSESSIONID|__CFBundleIdentifier)$/,
  /^ORIGINAL_XDG_CURRENT_DESKTOP$/,
  // OpenCode sets them for what it starts, and each server gets its own.
  /^(AGENT|OPENCODE|OPENCODE_PID|OPENCODE_SERVER_(USERNAME|PASSWORD))$/,
];

/** The same for programs whose servers are worth the same; fit for the name of a file. */
export function keyOf({ executable, env }: ServerProgram): string {
  const variables = Object.entries(env)
    .filter(([name, value]) => value !== undefined && !MEANINGLESS.some((pattern) => pattern.test(name)))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([executable, variables]))
    .digest("hex")
    .slice(0, 16);
}
