import { randomBytes, randomInt } from "node:crypto";

/** A new secret: 32 random bytes in base64url. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

const secretShape = /^[A-Za-z0-9_-]{43}$/;

/** Whether `text` could have come from `newSecret`, or be a verifier or S256 code challenge of that length. */
export function looksLikeSecret(text: string): boolean {
  return secretShape.test(text);
}

/** SHA-256: the only form in which a secret is stored, and a way to compare texts. */
export function sha256(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

export function sha256Hex(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** Compares two texts in constant time except for their lengths; without a Buffer, because every poll does this. */
export function sameText(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i += 1) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

// No vowels, so no words; no digits, so no ambiguous characters (RFC 8628, 6.1).
const letters = "BCDFGHJKLMNPQRSTVWXZ";

/** The code shown by both terminal and page, e.g. WDJB-MJHT. Users compare it; it grants no access. */
export function newUserCode(): string {
  const pick = () => letters[randomInt(letters.length)];
  return `${Array.from({ length: 4 }, pick).join("")}-${Array.from({ length: 4 }, pick).join("")}`;
}

/** Replaces a secret in output for operators. */
export const masked = "********";

/** Masks the password of any URL in a setting's text. */
export function withoutPassword(text: string): string {
  return text.replaceAll(/(?<=:\/\/[^\s/@:]*:)[^\s/]+(?=@)/g, masked);
}
