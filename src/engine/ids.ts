/**
 * IDs in the server's ascending form: a prefix, 48 bits of time (milliseconds times 4,096, in hexadecimal) and
 * 14 letters or digits.
 */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TAIL_LENGTH = 14;
const TIME_SPACE = 2n ** 48n;
/** How much the server's clock may be ahead, in milliseconds. */
const CLOCKS_DIFFER_MS = 86_400_000;

/** Returns numbers from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/**
 * A new unique ID.
 * @param rank orders IDs of the same millisecond, up to 4,095
 */
export function freshID(prefix: "msg" | "prt" | "bat" | "evt", at: number, random: Random, rank = 0): string {
  const tail = Array.from({ length: TAIL_LENGTH }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]);
  return `${prefix}_${timePart(at, rank)}${tail.join("")}`;
}

/** An ID that anyone can compute from the same time and words. */
export function derivedID(prefix: "msg" | "prt", at: number, ...words: readonly string[]): string {
  let rest = hash128(words.join("\u0000"));
  let tail = "";
  for (let i = 0; i < TAIL_LENGTH; i++) {
    tail += ALPHABET[Number(rest % 62n)];
    rest /= 62n;
  }
  return `${prefix}_${timePart(at)}${tail}`;
}

/** The ID of a part of one of our messages, derived from the message's ID. Sorts by `index`. */
export function partID(messageID: string, index: number): string {
  const [, digits = "0", tail = ""] = /^msg_([0-9a-f]{12})(.*)$/.exec(messageID) ?? [];
  return `prt_${((BigInt(`0x${digits}`) + BigInt(index)) % TIME_SPACE).toString(16).padStart(12, "0")}${tail}`;
}

/** When an ID was created, in milliseconds since 1970: within the two years before `now`, after which times repeat. */
export function timeOf(id: string, now: number): number {
  const [, digits] = /_([0-9a-f]{12})/.exec(id) ?? [];
  if (digits === undefined) return now;
  const space = Number(TIME_SPACE / 4096n);
  const ago = (now - Number(BigInt(`0x${digits}`) / 4096n)) % space;
  return now - ago;
}

/** Whether an ID of the server was created before a time, in milliseconds since 1970. */
export function isMadeBefore(id: string, time: number, now: number): boolean {
  return timeOf(id, now + CLOCKS_DIFFER_MS) < time;
}

function timePart(at: number, rank = 0): string {
  return ((BigInt(Math.floor(at)) * 4096n + BigInt(Math.min(rank, 4095))) % TIME_SPACE)
    .toString(16)
    .padStart(12, "0");
}

/** FNV-1a, 128 bits: sufficient spread for IDs, but no protection against guessing. */
function hash128(text: string): bigint {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (let i = 0; i < text.length; i++) {
    hash ^= BigInt(text.charCodeAt(i));
    hash = BigInt.asUintN(128, hash * 0x0000000001000000000000000000013bn);
  }
  return hash;
}
