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

/** SHA-256: the only form in which a secret is stored, and by which texts are told apart. */
export function sha256(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

export function sha256Hex(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** Compares two texts in a time that tells nothing but their lengths; without a Buffer, since every poll does. */
export function sameText(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i += 1) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

// No vowels, so no words; no digits, so nothing to mix up (RFC 8628, 6.1).
const letters = "BCDFGHJKLMNPQRSTVWXZ";

/** The code that terminal and page both show, e.g. WDJB-MJHT. It is compared by eye and opens nothing. */
export function newUserCode(): string {
  const pick = () => letters[randomInt(letters.length)];
  return `${Array.from({ length: 4 }, pick).join("")}-${Array.from({ length: 4 }, pick).join("")}`;
}

/** What an operator is shown of a secret. */
export const masked = "********";

/** A setting's text as it may be shown: an address in it keeps its password to itself, whatever it is for. */
export function withoutPassword(text: string): string {
  return text.replaceAll(/(?<=:\/\/[^\s/@:]*:)[^\s/]+(?=@)/g, masked);
}
