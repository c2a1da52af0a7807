import { dispatch, type HostMessage, type PanelMessage } from "../protocol/output.ts";
import { Formatter } from "../protocol/format.ts";
import { Images } from "./images.ts";
import { L10n } from "./l10n.ts";
import { MarkdownRenderer } from "./markdown.ts";
import { PageStateStore, type EditorApi } from "./page-state.ts";
import { Page } from "./page.ts";

declare function acquireVsCodeApi(): EditorApi;

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
const taskID = root.dataset["task"] ?? "";
const state = new PageStateStore(api, taskID);
const post = (message: PanelMessage): void => api.postMessage({ taskID, message });
let page: Page | undefined;

window.addEventListener("message", ({ data }: MessageEvent<HostMessage>) => {
  if (data.type !== "setup") {
    if (page) dispatch(page.handlers, data);
    return;
  }
  const { translations, now } = data;
  const offset = now - Date.now();
  const l10n = new L10n(translations);
  page ??= new Page(
    {
      l10n,
      format: new Formatter(document.documentElement.lang),
      images: new Images(l10n, post),
      markdown: new MarkdownRenderer(l10n.t("Copy")),
      now: () => Date.now() + offset,
      post,
    },
    state,
    root,
  );
});

window.addEventListener("input", () => post({ type: "keep" }), { once: true });
post({ type: "ready" });
