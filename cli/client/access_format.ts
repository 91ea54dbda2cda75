import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Issued } from "./access.ts";
import { execCredential } from "./kubernetes.ts";

// The formats in which a client can have a credential. Which of them there are depends on its kind.

/** Each turns an issued credential into what `svc access get` prints. */
const formats = {
  json: (issued: Issued) => `${JSON.stringify(issued)}\n`,
  env: (issued: Issued) =>
    Object.entries(environmentOf(issued))
      .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`)
      .join(""),
  kube: execCredential,
} satisfies Record<string, (issued: Issued, env: Environment) => string>;

export type AccessFormat = keyof typeof formats;

/**
 * Of formats that tools ask for each time they start: how many seconds before its end a credential is no longer good
 * enough. The others are issued anew each time.
 */
export const cachedFormats: Partial<Record<AccessFormat, number>> = { kube: 60 };

/** @throws Unavailable when a credential of this kind cannot be had in this format */
export function formatCredential(format: AccessFormat, issued: Issued, env: Environment): string {
  return formats[format](issued, env);
}

/** The variables in which programs look for a credential. @throws Unavailable for a kind without any */
export function environmentOf({ credential: { kind, fields } }: Issued): Record<string, string> {
  if (kind === "database" && fields.engine === "postgresql") return postgresqlEnvironment(fields);
  throw new Unavailable(`A credential of kind ${kind} has no variables: use --format json`);
}

function postgresqlEnvironment(fields: Record<string, string>): Record<string, string> {
  const { host = "", port = "", database = "", user = "", password = "", sslmode = "" } = fields;
  const at = host.includes(":") ? `[${host}]` : host;
  const [login, secret, name] = [user, password, database].map(encodeURIComponent);
  return {
    ...{ PGHOST: host, PGPORT: port, PGDATABASE: database, PGUSER: user, PGPASSWORD: password },
    PGSSLMODE: sslmode,
    DATABASE_URL: `postgres://${login}:${secret}@${at}:${port}/${name}?sslmode=${sslmode}`,
  };
}
