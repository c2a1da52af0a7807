import type { ImageView, PanelMessage } from "../protocol/output.ts";
import { h } from "./dom.ts";
import type { L10n } from "./l10n.ts";

/** How many images are kept for being drawn again, unless more are in the page. */
const MAX_KEPT = 24;
/** Milliseconds after which an image is read again when it is drawn: its file may have changed. */
const FRESH_MS = 10_000;

/** An image with its size in pixels, so that it takes its place at once. */
type SizedImage = ImageView & { readonly width?: string; readonly height?: string };
type KeptImage = SizedImage & { readonly at: number };

/** Shows images of the workspace in their links. The extension reads them, one at a time. */
export class Images {
  private readonly kept = new Map<string, KeptImage>();
  /** The paths to read; the first one is being read. */
  private readonly wanted: string[] = [];

  constructor(
    private readonly l10n: L10n,
    private readonly post: (message: PanelMessage) => void,
  ) {}

  /** Shows the images that are known, and requests the others. */
  fill(root: ParentNode): void {
    for (const link of root.querySelectorAll<HTMLElement>(".path.image")) {
      const kept = this.kept.get(link.title);
      if (kept) show(link, kept);
      if (!kept || Date.now() - kept.at > FRESH_MS) this.request(link.title);
    }
  }

  /** Resolves once the image can be drawn. */
  async receive(path: string, image: ImageView): Promise<void> {
    const sized = await this.measure(image);
    this.kept.delete(path);
    this.kept.set(path, { ...sized, at: Date.now() });
    this.forget();
    this.wanted.shift();
    if (this.wanted[0] !== undefined) this.post({ type: "image", path: this.wanted[0] });
  }

  /** Drops the oldest images, but none in the page, which would be read again at once. */
  private forget(): void {
    const links = document.querySelectorAll<HTMLElement>(".path.image");
    const shown = new Set([...links].map(({ title }) => title));
    const others = [...this.kept.keys()].filter((path) => !shown.has(path));
    for (const path of others.slice(0, Math.max(0, this.kept.size - MAX_KEPT))) this.kept.delete(path);
  }

  private request(path: string): void {
    if (this.wanted.includes(path)) return;
    if (this.wanted.push(path) === 1) this.post({ type: "image", path });
  }

  private async measure(image: ImageView): Promise<SizedImage> {
    if (image.data === undefined) return image;
    const element = h("img", { src: image.data });
    try {
      await element.decode();
      const { naturalWidth, naturalHeight } = element;
      return { ...image, width: String(naturalWidth), height: String(naturalHeight) };
    } catch {
      return { problem: this.l10n.t("The image is damaged.") };
    }
  }
}

function show(link: HTMLElement, { data, problem, width, height }: SizedImage): void {
  const old = link.querySelector("img, .image-problem");
  if (old && (old.getAttribute("src") ?? old.textContent) === (data ?? problem)) return;
  old?.remove();
  // The text of the link, which stays below the image, says what it is.
  if (data !== undefined) link.prepend(h("img", { src: data, width, height, alt: "" }));
  else link.append(h("span", { class: "image-problem" }, problem));
}
