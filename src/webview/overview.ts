import { Formatter } from "../protocol/format.ts";
import type { PageMessage, PanelMessage } from "../protocol/output.ts";
import type { OverviewMessage } from "../protocol/overview.ts";
import { L10n } from "./l10n.ts";
import { OverviewPage, type OverviewState } from "./overview/page.ts";

declare function acquireVsCodeApi(): {
  postMessage(message: PageMessage): void;
  getState(): OverviewState | undefined;
  setState(state: OverviewState): void;
};

const api = acquireVsCodeApi();
const post = (message: PanelMessage): void => api.postMessage({ taskID: "", message });
let page: OverviewPage | undefined;

window.addEventListener("message", ({ data }: MessageEvent<OverviewMessage>) => {
  if (data.type === "tasks") {
    page?.show(data);
    return;
  }
  const offset = data.now - Date.now();
  const { lang } = document.documentElement;
  const time = new Intl.DateTimeFormat(lang, { hour: "numeric", minute: "2-digit" });
  const exactTime = new Intl.DateTimeFormat(lang, { timeStyle: "medium" });
  page ??= new OverviewPage(
    {
      l10n: new L10n(data.translations),
      format: new Formatter(lang),
      now: () => Date.now() + offset,
      clock: (at) => (at % 60_000 === 0 ? time : exactTime).format(at),
      openTask: (id) => post({ type: "open-task", id }),
    },
    { post, kept: api.getState() ?? {}, keep: (state) => api.setState(state) },
    document.getElementById("app")!,
  );
});

post({ type: "ready" });
