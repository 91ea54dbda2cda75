import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { ConfigurationError } from "./errors.ts";

/** Binds a sealed text to its purpose and name, so that it cannot be decrypted in another place. */
export interface Seal {
  /** SVC_KEY_SECRET */
  secret: string;
  purpose: string;
  name: string;
}

/** Encrypts a text with AES-256-GCM. The result is a 12-byte nonce, the ciphertext and a 16-byte tag. */
export function seal(text: string, { secret, purpose, name }: Seal): Uint8Array {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(secret, purpose), nonce).setAAD(Buffer.from(name));
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Decrypts a sealed text. `what` names it in the error.
 * @throws ConfigurationError if the seal is different or the bytes have changed
 */
export function unseal(bytes: Uint8Array, { secret, purpose, name }: Seal, what: string): string {
  const [nonce, text, tag] = [bytes.subarray(0, 12), bytes.subarray(12, -16), bytes.subarray(-16)];
  try {
    const decipher = createDecipheriv("aes-256-gcm", keyOf(secret, purpose), nonce).setAAD(Buffer.from(name));
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString();
  } catch (cause) {
    throw new ConfigurationError(
      [
        `SVC_KEY_SECRET cannot decrypt ${what}: set the secret that this database has been used with, on every server and worker (docs/troubleshooting.md, "Lost key secret")`,
      ],
      { cause },
    );
  }
}

function keyOf(secret: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "svc", purpose, 32));
}
