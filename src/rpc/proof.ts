import { createHmac, timingSafeEqual } from "node:crypto";

export type Role = "window" | "daemon";

/** Proves that this end knows the token, for one greeting. */
export function proofOf(token: string, role: Role, nonce: string): string {
  return createHmac("sha256", token).update(`${role}\n${nonce}`).digest("base64url");
}

export function isProof(given: string, token: string, role: Role, nonce: string): boolean {
  const [a, b] = [given, proofOf(token, role, nonce)].map((text) => Buffer.from(text));
  return a !== undefined && b !== undefined && a.length === b.length && timingSafeEqual(a, b);
}
