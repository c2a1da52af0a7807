import type { Locator } from "playwright-core";

type Color = readonly [red: number, green: number, blue: number, alpha: number];

/** A text, its color, and the background and opacity of each element that contains it, innermost first. */
interface DrawnText {
  readonly text: string;
  readonly color: string;
  readonly layers: readonly { readonly background: string; readonly opacity: number }[];
}

/**
 * The visible texts in a part of the window whose contrast to their background is less than `least`, each with its
 * contrast. Takes transparency into account. Throws if there is no text.
 */
export async function faintTexts(part: Locator, least: number): Promise<readonly string[]> {
  const texts = await part.evaluate((root) => {
    const found: DrawnText[] = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const [text, parent] = [node.textContent?.trim(), node.parentElement];
      if (!text || !parent?.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const layers = [];
      for (let element: Element | null = parent; element; element = element.parentElement) {
        const { backgroundColor, opacity } = getComputedStyle(element);
        layers.push({ background: backgroundColor, opacity: Number(opacity) });
      }
      found.push({ text, color: getComputedStyle(parent).color, layers });
    }
    return found;
  });
  if (texts.length === 0) throw new Error("There is no text to look at.");
  return texts.flatMap((drawn) => {
    const ratio = contrast(drawn);
    return ratio < least ? [`${drawn.text} ${ratio.toFixed(2)}`] : [];
  });
}

/** The width in pixels of the outline that marks an element as focused or selected. */
export async function outlineWidth(element: Locator): Promise<number> {
  return element.evaluate((each) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(each);
    return outlineStyle === "none" ? 0 : Number.parseFloat(outlineWidth);
  });
}

/** The contrast ratio as defined by the Web Content Accessibility Guidelines. */
function contrast({ color, layers }: DrawnText): number {
  const ground = layers.reduceRight<Color>(
    (below, { background }) => over(colorOf(background), below),
    [255, 255, 255, 1],
  );
  const opacity = layers.reduce((product, layer) => product * layer.opacity, 1);
  const [red, green, blue, alpha] = colorOf(color);
  const [one, other] = [luminance(over([red, green, blue, alpha * opacity], ground)), luminance(ground)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

function colorOf(css: string): Color {
  const [first = 0, second = 0, third = 0, alpha = 1] = (css.match(/-?[\d.]+/g) ?? []).map(Number);
  const scale = css.startsWith("color(") ? 255 : 1;
  return [first * scale, second * scale, third * scale, alpha];
}

function over([red, green, blue, alpha]: Color, below: Color): Color {
  const mixed = [red, green, blue].map((value, index) => value * alpha + (below[index] ?? 0) * (1 - alpha));
  return [mixed[0] ?? 0, mixed[1] ?? 0, mixed[2] ?? 0, 1];
}

function luminance([red, green, blue]: Color): number {
  const [r = 0, g = 0, b = 0] = [red, green, blue]
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
