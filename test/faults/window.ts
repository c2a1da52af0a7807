/** A window in a separate process, so that it can be killed like an extension host. Serves `WindowProcess`. */
import { messageOf } from "../../src/engine/errors.ts";
import type { FolderCalls } from "../../src/rpc/contract.ts";
import { DaemonDesk, type DaemonWindow, type DeskPlace } from "../support/daemon.ts";

export interface WindowRequest {
  readonly id: number;
  readonly method: "tasks" | keyof FolderCalls;
  readonly args: readonly unknown[];
}

export interface WindowAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

async function carryOut({ folder }: DaemonWindow, { method, args }: WindowRequest): Promise<unknown> {
  if (method === "tasks") return [...folder.tasks.values()];
  return (folder.calls[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
}

const { place, url } = JSON.parse(process.argv[2] ?? "") as {
  readonly place: DeskPlace;
  readonly url?: string;
};
const settings = url === undefined ? {} : { server: { url, startTimeoutMs: 60_000 } };
const window = new DaemonDesk(place).window({ maxConcurrentTasks: 2 }, settings);
// As the extension does when a window opens.
void window.folder.calls.join();
process.on("message", (request: WindowRequest) => {
  const { id } = request;
  const answer = (answered: WindowAnswer): void => void process.send?.(answered);
  carryOut(window, request).then(
    (value) => answer({ id, value }),
    (error: unknown) => answer({ id, error: messageOf(error) }),
  );
});
const leave = (): void => {
  window.close();
  process.exit();
};
process.on("disconnect", leave);
// The parent process may have ended by now.
if (!process.connected) leave();
