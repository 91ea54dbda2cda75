import { isRecord } from "../../platform/record.ts";
import type { Server } from "./server.ts";

/** The claims of an access token. Only the server verifies its signature. */
export interface AccessToken {
  token: string;
  expiresAt: Date;
  issuedAt?: Date;
  subject?: string;
}

/** A server, and how to authenticate there. */
export interface Session {
  server: Server;
  /** Where requests go: the server, or its address for client certificates. */
  endpoint: Server;
  /** Absent with a client certificate, which `endpoint` has. */
  token?: AccessToken;
  expiresAt: Date;
  user: string | undefined;
  source: "SVC_TOKEN" | "file" | "keychain" | "certificate";
}

/** The headers that authenticate a request. */
export function authorization({ token }: Pick<Session, "token">): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token.token}` };
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
