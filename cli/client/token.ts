import { isRecord } from "../../platform/record.ts";

/** The claims of an access token. Only the server verifies its signature. */
export interface AccessToken {
  token: string;
  expiresAt: Date;
  issuedAt?: Date;
  subject?: string;
}

const LONGEST = 16_384;

/** Parses a JWT (RFC 7519) with an expiry; undefined if the text is not one. */
export function readToken(text: unknown): AccessToken | undefined {
  if (typeof text !== "string" || text.length > LONGEST) return undefined;
  const match = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text);
  if (match === null) return undefined;
  const [header, payload] = [decode(match[1]!), decode(match[2]!)];
  if (typeof header?.alg !== "string" || header.alg.toLowerCase() === "none") return undefined;
  // The largest Date is 8.64e15 ms.
  if (typeof payload?.exp !== "number" || !(payload.exp > 0 && payload.exp <= 8.64e12)) return undefined;
  const subject = typeof payload.sub === "string" ? payload.sub : undefined;
  const issuedAt = typeof payload.iat === "number" ? new Date(payload.iat * 1000) : undefined;
  return { token: text, expiresAt: new Date(payload.exp * 1000), issuedAt, subject };
}

function decode(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
