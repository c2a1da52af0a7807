import { WriterElection } from "../../src/bridge/writer-election.ts";
import { openSharedWindow, type ReachableServer, type SharedWindow } from "./windows.ts";
import { realClock } from "./engine.ts";

/** What a window's process is told to do; it answers each with a `Said`. */
export type Told =
  | { readonly type: "elect"; readonly seat: string }
  | { readonly type: "stop" }
  | { readonly type: "open"; readonly server: ReachableServer; readonly seat: string }
  | { readonly type: "launch"; readonly prompt: string; readonly parentSessionID: string };

export interface Said {
  readonly role?: string;
  readonly taskID?: string;
  readonly failure?: string;
}

let election: WriterElection | undefined;
let window: SharedWindow | undefined;

async function carryOut(told: Told): Promise<Said> {
  switch (told.type) {
    case "elect":
      election = new WriterElection({
        seat: told.seat,
        handle: () => Promise.resolve(process.pid),
        setWriting: () => Promise.resolve(),
        clock: realClock,
        logger: { debug() {}, info() {}, warn() {}, error() {} },
      });
      await election.start();
      return { role: election.role };
    case "stop":
      await election?.stop();
      return {};
    case "open":
      window = await openSharedWindow(told.server, told.seat);
      return { role: window.election.role };
    case "launch": {
      const { prompt, parentSessionID } = told;
      const task = await window?.commands.launch({ prompt, parentSessionID, launchedBy: "person" });
      return task ? { taskID: task.id } : { failure: "There is no window." };
    }
  }
}

process.on("message", (told) => {
  carryOut(told as Told)
    .catch((error: unknown): Said => ({ failure: String(error) }))
    .then((said) => process.send?.(said))
    .catch(() => process.exit(1));
});

process.on("disconnect", () => process.exit());
