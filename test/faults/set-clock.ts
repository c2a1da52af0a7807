import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DaemonDesk } from "../support/daemon.ts";

/** The desk with a daemon whose clock is off by the milliseconds in a file, which can change. */
export function withClock({ place }: DaemonDesk, file: string): DaemonDesk {
  writeFileSync(file, "0");
  const env = {
    ...place.env,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, "set-clock.mjs")}`,
    TEST_CLOCK_FILE: file,
  };
  return new DaemonDesk({ ...place, env });
}
