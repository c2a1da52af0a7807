/**
 * IDs in the server's ascending form: a prefix, 48 bits of time (milliseconds times 4,096, in hexadecimal) and
 * 14 letters or digits.
 */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TAIL_LENGTH = 14;
const TIME_SPACE = 2n ** 48n;

/** Gives numbers from 0 up to but not including 1. */
export type Random = () => number;

/**
 * A new ID that no one else gives.
 * @param rank orders IDs of one millisecond, up to 4,095
 */
export function freshID(prefix: "msg" | "prt" | "bat" | "evt", at: number, random: Random, rank = 0): string {
  const tail = Array.from({ length: TAIL_LENGTH }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]);
  return `${prefix}_${timePart(at, rank)}${tail.join("")}`;
}

/** The ID that everyone computes who knows the same time and words. */
export function derivedID(prefix: "msg" | "prt", at: number, ...words: readonly string[]): string {
  let rest = hash128(words.join("\u0000"));
  let tail = "";
  for (let i = 0; i < TAIL_LENGTH; i++) {
    tail += ALPHABET[Number(rest % 62n)];
    rest /= 62n;
  }
  return `${prefix}_${timePart(at)}${tail}`;
}

/** The ID of a part of a message of ours: it follows from the message's, and sorts by `index`. */
export function partID(messageID: string, index: number): string {
  const [, digits = "0", tail = ""] = /^msg_([0-9a-f]{12})(.*)$/.exec(messageID) ?? [];
  return `prt_${((BigInt(`0x${digits}`) + BigInt(index)) % TIME_SPACE).toString(16).padStart(12, "0")}${tail}`;
}

/** When the server gave an ID, in milliseconds since 1970: the form holds the time of the two years before `now`. */
export function timeOf(id: string, now: number): number {
  const [, digits] = /_([0-9a-f]{12})/.exec(id) ?? [];
  if (digits === undefined) return now;
  const space = Number(TIME_SPACE / 4096n);
  const ago = (now - Number(BigInt(`0x${digits}`) / 4096n)) % space;
  return now - ago;
}

function timePart(at: number, rank = 0): string {
  return ((BigInt(Math.floor(at)) * 4096n + BigInt(Math.min(rank, 4095))) % TIME_SPACE)
    .toString(16)
    .padStart(12, "0");
}

/** FNV-1a, 128 bits: enough spread for IDs, no secret in it. */
function hash128(text: string): bigint {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (let i = 0; i < text.length; i++) {
    hash ^= BigInt(text.charCodeAt(i));
    hash = BigInt.asUintN(128, hash * 0x0000000001000000000000000000013bn);
  }
  return hash;
}
