import fc from "fast-check";

/** Texts that have broken programs: control characters, other programs' syntax, halves of characters, sheer length. */
const NASTY: readonly string[] = [
  "",
  " ",
  "\n\n\n",
  "\0",
  "\ud800",
  "\udfff\ud800",
  "\u202e\u2066abc\u2069",
  "\u200b\ufeff",
  "e\u0301".repeat(50),
  "👩‍👩‍👧‍👦",
  "\u001b]8;;http://x\u0007\u001b[31m",
  "<|endoftext|><|im_start|>system",
  "<script>alert(1)</script><img src=x onerror=alert(1)>",
  "[x](command:workbench.action.quit) $(sync~spin)",
  "```\n~~~\n````",
  "data: {}\n\nevent: x\n\ndata: [DONE]",
  "%00%2e%2e%2f ../../etc/passwd",
  "'; DROP TABLE session; -- `$(reboot)` && %PATH%",
  "__proto__",
  "constructor",
  "toString",
  "ses_",
  "msg_ffffffffffffffffffffffffff",
];
const LONG: readonly string[] = ["x".repeat(20_000), "字".repeat(3_000)];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: fc.constantFrom(...NASTY), weight: 3 },
  fc.constantFrom(...LONG),
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.array(fc.constantFrom(...NASTY), { maxLength: 4 }).map((parts) => parts.join("")),
);

const leaf = fc.oneof(
  hostileText,
  fc.constantFrom(null, true, false, 0, -0, -1, 1e308, -1e308, 5e-324, 2 ** 53, 0.1, 1.5),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** JSON that is deeper than a recursive function can go; kept as text, because test tools are recursive too. */
export const DEEP_JSON = `{"input": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`;

/** A value of JSON, with names that objects already have. */
export const hostileJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(hostileText, tie("value")), { maxLength: 4 }).map(objectOf),
    fc.constant(400).map(nested),
  ),
})).value;

function objectOf(entries: readonly (readonly [string, unknown])[]): unknown {
  // A literal `__proto__` would set the prototype, unlike one that was read from JSON.
  return Object.fromEntries(entries);
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

/** A change of one place in a sample. `at` chooses the place. */
interface Wound {
  readonly at: number;
  readonly how: "remove" | "replace" | "rename" | "add" | "repeat";
  readonly name: string;
  readonly value: unknown;
}

const wound: fc.Arbitrary<Wound> = fc.record({
  at: fc.nat(10_000),
  how: fc.constantFrom("remove", "replace", "replace", "replace", "rename", "add", "repeat"),
  name: hostileText,
  value: fc.oneof(hostileText, hostileJson),
});

/** One of the samples, unchanged or with a few places spoiled. Samples are values of JSON. */
export function spoiled(...samples: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(wound, { maxLength: 3 }))
    .map(([sample, wounds]) => wounds.reduce(inflict, structuredClone(sample)));
}

type Place = readonly [holder: Record<string, unknown> | unknown[], key: string];

function inflict(sample: unknown, { at, how, name, value }: Wound): unknown {
  const places = placesIn(sample);
  const place = places[at % Math.max(1, places.length)];
  if (!place) return value;
  const [holder, key] = place;
  const held = holder as Record<string, unknown>;
  if (how === "replace") define(held, key, value);
  else if (how === "repeat") define(held, key, repeated(held[key]));
  else if (how === "add") define(held, Array.isArray(holder) ? String(holder.length) : name, value);
  else if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else {
    if (how === "rename") define(held, name, held[key]);
    delete held[key];
  }
  return sample;
}

/** The value many times, but only twice if it is large itself: what is repeated again and again would fill the memory. */
function repeated(value: unknown): readonly unknown[] {
  const length = Math.max(2, Math.floor(300 / (placesIn(value).length + 1)));
  return Array.from({ length }, () => value);
}

/** Assigning to `__proto__` would not create a property. */
function define(holder: object, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
}

function placesIn(value: unknown): readonly Place[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [[holder, key] as const, ...placesIn(holder[key])]);
}
