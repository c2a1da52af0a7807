import { createHmac, timingSafeEqual } from "node:crypto";

export type Role = "window" | "daemon";

/** Proves that this end knows the token, for one greeting. */
export function proofOf(token: string, role: Role, nonce: string): string {
  return createHmac("sha256", token).update(`${role}\n${nonce}`).digest("base64url");
}

/** @param given what the other end sent, which may be anything */
export function isProof(given: unknown, token: string, role: Role, nonce: string): boolean {
  const actual = Buffer.from(typeof given === "string" ? given : "");
  const expected = Buffer.from(proofOf(token, role, nonce));
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
