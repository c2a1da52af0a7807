import { posix, win32 } from "node:path";

const FOLDER_NAME = "opencode-async-agents";

export interface UserPlaces {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** The folder of this user's state, shared by all editors. */
export function defaultStateFolder({ platform, env, home }: UserPlaces): string {
  switch (platform) {
    case "win32":
      return win32.join(env.LOCALAPPDATA || win32.join(home, "AppData", "Local"), FOLDER_NAME);
    case "darwin":
      return posix.join(home, "Library", "Application Support", FOLDER_NAME);
    default: {
      const state = env.XDG_STATE_HOME;
      return posix.join(
        state && posix.isAbsolute(state) ? state : posix.join(home, ".local", "state"),
        FOLDER_NAME,
      );
    }
  }
}
