import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Issued } from "./access.ts";
import type { Margin } from "./access_cache.ts";
import { execCredential, tokenOf } from "./kubernetes.ts";

// The formats in which a client can have a credential. Which of them there are depends on its kind.

/** Each turns an issued credential into what `svc access get` prints. */
const formats = {
  json: (issued: Issued) => `${JSON.stringify(issued)}\n`,
  env: (issued: Issued) =>
    Object.entries(environmentOf(issued))
      .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`)
      .join(""),
  token: (issued: Issued) => `${tokenOf(issued)}\n`,
  kube: execCredential,
  aws: processCredential,
} satisfies Record<string, (issued: Issued, env: Environment) => string>;

export type AccessFormat = keyof typeof formats;

/**
 * Formats that tools ask for each time they start, and how many seconds before its end a credential is no longer good
 * enough for them. In the others it is issued anew each time.
 */
export const cachedFormats: Partial<Record<AccessFormat, Margin>> = {
  kube: () => 60,
  // Ten minutes before, AWS's own libraries begin to ask for another one with each call.
  aws: (lifetime) => Math.min(600, lifetime / 3),
};

/** @throws Unavailable when a credential of this kind cannot be had in this format */
export function formatCredential(format: AccessFormat, issued: Issued, env: Environment): string {
  return formats[format](issued, env);
}

/** The variables in which programs look for a credential. @throws Unavailable for a kind without any */
export function environmentOf({ credential: { kind, fields } }: Issued): Record<string, string> {
  if (kind === "database" && fields.engine === "postgresql") return postgresqlEnvironment(fields);
  if (kind === "aws") return awsEnvironment(fields);
  if (kind === "token" && fields.server === undefined) return { OIDC_TOKEN: fields.token ?? "" };
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

function awsEnvironment(fields: Record<string, string>): Record<string, string> {
  const { access_key_id = "", secret_access_key = "", session_token = "", region } = fields;
  return {
    ...{ AWS_ACCESS_KEY_ID: access_key_id, AWS_SECRET_ACCESS_KEY: secret_access_key },
    AWS_SESSION_TOKEN: session_token,
    // The second is what the AWS command line of version 1 and boto3 read.
    ...(region ? { AWS_REGION: region, AWS_DEFAULT_REGION: region } : {}),
  };
}

/**
 * What AWS's tools read from a `credential_process`, version 1.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
 */
function processCredential({ role, credential: { kind, fields } }: Issued): string {
  if (kind !== "aws")
    throw new Unavailable(
      `${role} is no role for AWS: a credential of kind ${kind} cannot be had in this format`,
    );
  const { access_key_id, secret_access_key, session_token, expiration } = fields;
  return `${JSON.stringify({
    ...{ Version: 1, AccessKeyId: access_key_id, SecretAccessKey: secret_access_key },
    ...{ SessionToken: session_token, Expiration: expiration },
  })}\n`;
}
