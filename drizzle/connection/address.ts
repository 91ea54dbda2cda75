import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";

/** What libpq takes and PostgreSQL does not: how to tend the connection, where postgres.js has its own way. */
const onlyOfLibpq = [
  ...["channel_binding", "gssencmode", "sslcompression", "sslsni", "tcp_user_timeout"],
  ...["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"],
];

/** Encryption as libpq's files say it. */
export interface Encryption extends ConnectionOptions {
  /** The same, for a tool that libpq speaks for. */
  variables: Record<string, string>;
}

export interface Address {
  url: string;
  /** Undefined where postgres.js reads all of it from the address itself. */
  ssl?: Encryption | "verify-full";
  /** Whether it says how long connecting may take. */
  hasTimeout: boolean;
}

/**
 * An address as libpq takes it, for postgres.js: that would send each parameter that it does not know to the server, which
 * refuses it.
 * @throws when a file that it names cannot be read
 */
export function readAddress(text: string): Address {
  const url = new URL(text);
  const { searchParams: parameters } = url;
  const hasTimeout = parameters.has("connect_timeout");
  const ssl = encryption(parameters);
  const gone = [...onlyOfLibpq, "sslrootcert", "sslcert", "sslkey"];
  if (parameters.get("target_session_attrs") === "any") gone.push("target_session_attrs");
  const there = gone.filter((name) => parameters.has(name));
  for (const name of there) parameters.delete(name);
  return { url: there.length > 0 ? url.href : text, ssl, hasTimeout };
}

function encryption(parameters: URLSearchParams): Address["ssl"] {
  const [authority, certificate, key] = ["sslrootcert", "sslcert", "sslkey"].map((name) =>
    parameters.get(name),
  );
  const said = parameters.get("sslmode");
  // As for libpq, whoever may do without encryption asks for no proof of who is there.
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
    variables: {
      // Without an authority libpq verifies nothing; our own connection does, by those of the system.
      PGSSLMODE: root ? verified : "require",
      ...(root ? { PGSSLROOTCERT: root } : {}),
      ...(certificate ? { PGSSLCERT: certificate } : {}),
      ...(key ? { PGSSLKEY: key } : {}),
    },
  };
}
