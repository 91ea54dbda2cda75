import { createHmac } from "node:crypto";
import { ConfigurationError } from "../../platform/errors.ts";

/**
 * Decodes the key of a secret in the format of Standard Webhooks: `whsec_` and 24 to 64 bytes in Base64.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @throws ConfigurationError, which does not contain the secret
 */
export function keyOf(secret: string): Buffer {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  const same = key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  if (!same || key.length < 24 || key.length > 64) {
    throw new ConfigurationError(["the secret is not whsec_ and 24 to 64 bytes in Base64"]);
  }
  return key;
}

/** The headers that prove who sent `body` and when. `at` prevents replays of an old message. */
export function signedHeaders(
  key: Buffer,
  { id, at, body }: { id: string; at: Date; body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
