/** A piece of terminal output in one style; `classes` are classes of the style sheet. */
export interface StyledText {
  readonly text: string;
  readonly classes: readonly string[];
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/* eslint-disable no-control-regex -- terminals are driven by control characters */
/** `ESC [ … letter`, `ESC ] … BEL` or `ESC ] … ESC \`, and two-character escapes. */
const ESCAPE =
  /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[ -/]*[0-Z\\^-~])/g;
const OTHER_CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/* eslint-enable no-control-regex */

interface Style {
  readonly color?: string | undefined;
  readonly background?: string | undefined;
  readonly marks: ReadonlySet<string>;
}

const PLAIN: Style = { marks: new Set() };

/** Parses terminal output: colors become styles, and an overwritten line shows its last state. */
export function styledTerminalText(text: string): readonly StyledText[] {
  const pieces: StyledText[] = [];
  const add = (piece: string, style: Style): void => {
    const shown = piece.replace(OTHER_CONTROLS, "");
    if (shown !== "") pieces.push({ text: shown, classes: classesOf(style) });
  };
  const source = redrawn(text);
  let style = PLAIN;
  let at = 0;
  for (const match of source.matchAll(ESCAPE)) {
    add(source.slice(at, match.index), style);
    at = match.index + match[0].length;
    if (match[2] === "m") style = restyled(style, match[1] ?? "");
  }
  add(source.slice(at), style);
  return pieces;
}

/** The text of terminal output, without styles. */
export function plainTerminalText(text: string): string {
  return redrawn(text).replace(ESCAPE, "").replace(OTHER_CONTROLS, "");
}

/** A carriage return moves the cursor to the start of the line, where the following text overwrites it. */
function redrawn(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .split("\n")
    .map((line) => {
      const drawn = line.replace(/\r+$/, "");
      return drawn.slice(drawn.lastIndexOf("\r") + 1);
    })
    .join("\n");
}

function restyled(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  let next = style;
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code === 38 || code === 48) {
      // Skips a color from a palette (5;n) or a mixed one (2;r;g;b), because it isn't one of the theme's.
      index += codes[index + 1] === 5 ? 2 : 4;
    } else {
      next = withCode(next, code);
    }
  }
  return next;
}

function withCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, marks: new Set([...style.marks, "bold"]) };
  if (code === 2) return { ...style, marks: new Set([...style.marks, "dim"]) };
  if (code === 3) return { ...style, marks: new Set([...style.marks, "italic"]) };
  if (code === 4) return { ...style, marks: new Set([...style.marks, "underline"]) };
  if (code === 22) return { ...style, marks: without(style.marks, "bold", "dim") };
  if (code === 23) return { ...style, marks: without(style.marks, "italic") };
  if (code === 24) return { ...style, marks: without(style.marks, "underline") };
  if (code === 39) return { ...style, color: undefined };
  if (code === 49) return { ...style, background: undefined };
  if (code >= 30 && code <= 37) return { ...style, color: COLORS[code - 30] };
  if (code >= 40 && code <= 47) return { ...style, background: COLORS[code - 40] };
  if (code >= 90 && code <= 97) return { ...style, color: `bright-${COLORS[code - 90]}` };
  if (code >= 100 && code <= 107) return { ...style, background: `bright-${COLORS[code - 100]}` };
  return style;
}

function without(marks: ReadonlySet<string>, ...gone: readonly string[]): ReadonlySet<string> {
  return new Set([...marks].filter((mark) => !gone.includes(mark)));
}

function classesOf({ color, background, marks }: Style): string[] {
  const classes = [...marks].map((mark) => `ansi-${mark}`);
  if (color !== undefined) classes.push(`ansi-${color}`);
  if (background !== undefined) classes.push(`ansi-on-${background}`);
  return classes;
}
