import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";

/**
 * Parameters that libpq accepts but PostgreSQL does not: connection options that postgres.js handles in its own way.
 */
const onlyOfLibpq = [
  "channel_binding",
  "gssencmode",
  "sslcompression",
  "sslsni",
  "tcp_user_timeout",
  "keepalives",
  "keepalives_idle",
  "keepalives_interval",
  "keepalives_count",
];

/** Where a server listens. A host that begins with a slash is the directory of its Unix socket, as for libpq. */
export interface Place {
  host: string;
  port: number;
}

export interface Address {
  url: string;
  /** Undefined if postgres.js reads it from the address or from PGHOST. */
  place?: Place;
  /** Undefined if postgres.js reads all settings from the address itself. */
  ssl?: ConnectionOptions | "verify-full";
  /** Whether the address sets a connection timeout. */
  hasTimeout: boolean;
}

/**
 * Converts a libpq address for postgres.js, which would send unknown parameters to the server, and the server would
 * reject them.
 * @throws when a file named in the address cannot be read
 */
export function readAddress(text: string): Address {
  const url = new URL(text);
  const { searchParams: parameters } = url;
  const hasTimeout = parameters.has("connect_timeout");
  const place = placeOf(text);
  const bySocket = place?.host.startsWith("/");
  // Like libpq, which encrypts nothing that does not leave the machine.
  const ssl = bySocket ? undefined : encryption(parameters);
  const gone = [...onlyOfLibpq, "sslrootcert", "sslcert", "sslkey", "host", "port"];
  if (bySocket) gone.push("sslmode");
  if (parameters.get("target_session_attrs") === "any") gone.push("target_session_attrs");
  const there = gone.filter((name) => parameters.has(name));
  for (const name of there) parameters.delete(name);
  return { url: there.length > 0 ? url.href : text, place, ssl, hasTimeout };
}

/** The place in an address with at most one host, in whichever way it is written (PostgreSQL, 32.1.1.2). */
export function placeOf(address: string): Place | undefined {
  const { hostname, port, searchParams } = new URL(address);
  const host = searchParams.get("host") || decodeURIComponent(hostname).replace(/^\[|\]$/g, "");
  return host === "" ? undefined : { host, port: Number(searchParams.get("port") || port || 5432) };
}

function encryption(parameters: URLSearchParams): Address["ssl"] {
  const [authority, certificate, key] = ["sslrootcert", "sslcert", "sslkey"].map((name) =>
    parameters.get(name),
  );
  const said = parameters.get("sslmode");
  // Like libpq: if encryption is optional, the server is not verified.
  if (said === "disable" || said === "allow" || said === "prefer") return undefined;
  const isSystems = authority === "system";
  if (!certificate && !key && isSystems) return "verify-full";
  const [root, mode] = isSystems ? [undefined, "verify-full"] : [authority, said];
  if (!root && !certificate && !key) return undefined;
  const verified = root && mode !== "verify-full" ? "verify-ca" : (mode ?? "require");
  return {
    ...(root ? { ca: readFileSync(root) } : {}),
    ...(certificate ? { cert: readFileSync(certificate) } : {}),
    ...(key ? { key: readFileSync(key) } : {}),
    ...(verified === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
    ...(verified === "require" ? { rejectUnauthorized: false } : {}),
  };
}
