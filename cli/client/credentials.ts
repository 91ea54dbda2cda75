import { isRecord } from "../../platform/record.ts";
import { readUser } from "./answer.ts";

/** The stored data of one server; after `svc logout`, only the user. The names are those in the file. */
export interface Entry {
  user: string;
  /** Where the token is stored; absent without a token. */
  storage?: "file" | "keychain";
  /** Only with `storage: "file"`. */
  token?: string;
  /** ISO 8601. */
  expires_at?: string;
  certificate?: StoredCertificate;
}

/** What is known of the client certificate of a server, besides its files (certificate.ts). */
export interface StoredCertificate {
  user: string;
  /** The address that accepts it. */
  url: string;
  /** Where the private key is stored. */
  key: "file" | "keychain";
  /** Until when it can be renewed. ISO 8601. */
  sign_in_expires_at: string;
  /** A process renews it, or failed to, and others do not try until then. ISO 8601. */
  renewing_until?: string;
}

/** The credentials file: one entry per server, keyed by its base address. */
export interface Credentials {
  /** The server last signed in to. */
  last?: string;
  servers: Readonly<Record<string, Entry>>;
}

export const NO_CREDENTIALS: Credentials = { servers: {} };

/** Parses the file's text; undefined if it is not in the format of `formatCredentials`. */
export function parseCredentials(text: string): Credentials | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value.version !== 1 || !isRecord(value.servers)) return undefined;
  const { last, servers } = value;
  if (last !== undefined && typeof last !== "string") return undefined;
  if (!Object.values(servers).every(isEntry)) return undefined;
  return { last, servers: servers as Record<string, Entry> };
}

export function formatCredentials({ last, servers }: Credentials): string {
  return `${JSON.stringify({ version: 1, last, servers }, undefined, 2)}\n`;
}

/** After a sign-in: replaces the server's entry, and makes it the last server. */
export function withEntry(credentials: Credentials, base: string, entry: Entry): Credentials {
  return { last: base, servers: { ...credentials.servers, [base]: entry } };
}

/** After a sign-out: keeps only the user, for the next `svc login`. */
export function withoutToken(credentials: Credentials, base: string): Credentials {
  const entry = credentials.servers[base];
  if (entry === undefined) return credentials;
  return { ...credentials, servers: { ...credentials.servers, [base]: { user: entry.user } } };
}

/** The same with another certificate, or none. */
export function withCertificate(
  credentials: Credentials,
  base: string,
  certificate: StoredCertificate | undefined,
): Credentials {
  const entry = credentials.servers[base];
  if (entry === undefined) return credentials;
  return { ...credentials, servers: { ...credentials.servers, [base]: { ...entry, certificate } } };
}

function isEntry(value: unknown): value is Entry {
  if (!isRecord(value) || readUser(value.user) === undefined) return false;
  if (value.certificate !== undefined && !isCertificate(value.certificate)) return false;
  const { storage, token, expires_at: expiresAt } = value;
  if (storage === undefined) return token === undefined;
  if (typeof expiresAt !== "string" || Number.isNaN(Date.parse(expiresAt))) return false;
  return storage === "file" ? typeof token === "string" : storage === "keychain" && token === undefined;
}

function isCertificate(value: unknown): value is StoredCertificate {
  if (!isRecord(value) || readUser(value.user) === undefined) return false;
  const { url, key, sign_in_expires_at: end, renewing_until: renewing } = value;
  const isTime = (text: unknown) => typeof text === "string" && !Number.isNaN(Date.parse(text));
  if (!isTime(end) || !(renewing === undefined || isTime(renewing))) return false;
  return (key === "file" || key === "keychain") && typeof url === "string" && isHttps(url);
}

/** Whether a private key may be used at this address. */
export function isHttps(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.protocol === "https:" && url.username === "" && url.password === "";
}
