/**
 * The time from the click on the view's icon until its first text can be read, in new windows: with a server left
 * running by an earlier window, and without one. A built-in view that also starts with text serves as the control.
 */
import { defaultStateFolder } from "../../src/state/state-folder.ts";
import { DaemonDesk } from "../support/daemon.ts";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { startWorkbench, type Workbench } from "../ui/support/workbench.ts";
import { activationTime, ourName, tallViewport } from "./support/editor.ts";
import { median } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const WINDOWS = 5;

interface View {
  /** The label of its icon in the activity bar. */
  readonly label: string;
  /** The ID of its container element. */
  readonly container: string;
}
const our: View = { label: "Async Agents", container: "workbench.view.extension.asyncagents" };
const control: View = { label: "Run and Debug", container: "workbench.view.debug" };

const alone = { ours: [] as number[], control: [] as number[] };
const adopting = { ours: [] as number[], control: [] as number[] };
for (let round = 0; round < WINDOWS; round++) {
  await openWindow(round, alone, {});
  await withRunningServer((place) => openWindow(round, adopting, place));
}

const report = new Report("view-first-text");
report.figures("without a server", "ms", alone.ours);
report.figures("  the editor's own view", "ms", alone.control);
report.figures("with a running server", "ms", adopting.ours);
report.figures("  the editor's own view", "ms", adopting.control);
report.budget({ what: "without a server", value: median(alone.ours), limit: 1_000, unit: "ms" });
report.budget({ what: "with a running server", value: median(adopting.ours), limit: 1_000, unit: "ms" });
report.finish();

interface Place {
  readonly folder?: string;
  readonly env?: Record<string, string>;
}

async function openWindow(
  round: number,
  figures: typeof alone,
  { folder = tempDir("work"), env = hermeticEnv(hermeticHome()) }: Place,
): Promise<void> {
  const workbench = await startWorkbench({
    folder,
    env,
    settings: { "asyncagents.server.path": openCodeBinary() },
    viewport: tallViewport,
  });
  try {
    await activationTime(workbench, ourName);
    const measure = {
      ours: async () => figures.ours.push(await firstText(workbench, our)),
      control: async () => figures.control.push(await firstText(workbench, control)),
    };
    await (round % 2 === 0 ? measure.ours() : measure.control());
    await (round % 2 === 0 ? measure.control() : measure.ours());
  } finally {
    await workbench.stop();
  }
}

/** Milliseconds in the page, from pressing the mouse button to the frame with readable text. */
async function firstText({ page }: Workbench, { label, container }: View): Promise<number> {
  const icon = page.locator(`.activitybar a[aria-label^="${label}"]`).first();
  const measured = page.evaluate(
    `new Promise((resolve) => {
      document.addEventListener("mousedown", () => {
        const start = performance.now();
        const look = () => {
          const shown = document.getElementById(${JSON.stringify(container)});
          const texts = shown?.querySelectorAll(".welcome-view-content, .monaco-list-row, .message") ?? [];
          if ([...texts].some((text) => text.checkVisibility() && text.textContent.trim() !== ""))
            resolve(performance.now() - start);
          else requestAnimationFrame(look);
        };
        look();
      }, { capture: true, once: true });
    })`,
  );
  await icon.click();
  return (await measured) as number;
}

/** Runs a server for a folder, as a window that was just closed leaves it. */
async function withRunningServer(use: (place: Required<Place>) => Promise<void>): Promise<void> {
  const { place } = await DaemonDesk.open({ url: "http://127.0.0.1:9" });
  const { directory: folder, env } = place;
  const { platform } = process;
  const stateFolder = defaultStateFolder({ platform, env, home: env["HOME"] ?? "" });
  const desk = new DaemonDesk({ ...place, stateFolder });
  try {
    const window = desk.window();
    await window.folder.calls.connect();
    window.close();
    await use({ folder, env });
  } finally {
    await desk.close();
  }
}
