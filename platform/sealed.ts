import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Binds a sealed text to its purpose and name: moved to another place, it cannot be opened. */
export interface Seal {
  /** SVC_KEY_SECRET */
  secret: string;
  purpose: string;
  name: string;
}

/** Encrypts a text with AES-256-GCM: 12 bytes nonce, ciphertext, 16 bytes tag. */
export function seal(text: string, { secret, purpose, name }: Seal): Uint8Array {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(secret, purpose), nonce).setAAD(Buffer.from(name));
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** @throws node:crypto's error when it was sealed differently, or has changed */
export function unseal(bytes: Uint8Array, { secret, purpose, name }: Seal): string {
  const [nonce, text, tag] = [bytes.subarray(0, 12), bytes.subarray(12, -16), bytes.subarray(-16)];
  const decipher = createDecipheriv("aes-256-gcm", keyOf(secret, purpose), nonce).setAAD(Buffer.from(name));
  decipher.setAuthTag(tag);
  return Buffer.concat([decipher.update(text), decipher.final()]).toString();
}

function keyOf(secret: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "svc", purpose, 32));
}
