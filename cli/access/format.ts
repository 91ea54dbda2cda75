import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Issued } from "./access.ts";
import type { Margin } from "./cache.ts";
import { execCredential, tokenOf } from "./kubernetes.ts";

// The output formats of `svc access get`. Each supports only some kinds of credentials.

/** Functions that format an issued credential. */
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
 * The formats that tools request each time they start, with the margin at which a cached credential is replaced. In other
 * formats, a new credential is issued each time.
 */
export const cachedFormats: Partial<Record<AccessFormat, Margin>> = {
  kube: () => 60,
  // In the last ten minutes, the AWS libraries ask for a new one with each call.
  aws: (lifetime) => Math.min(600, lifetime / 3),
};

/** @throws Unavailable if the format does not support this kind of credential */
export function formatCredential(format: AccessFormat, issued: Issued, env: Environment): string {
  return formats[format](issued, env);
}

/** The environment variables that programs read a credential from. @throws Unavailable for a kind without any */
export function environmentOf({ credential: { kind, fields } }: Issued): Record<string, string> {
  if (kind === "database" && fields.engine === "postgresql") return postgresqlEnvironment(fields);
  if (kind === "aws") return awsEnvironment(fields);
  if (kind === "token" && fields.server === undefined) return { OIDC_TOKEN: fields.token ?? "" };
  throw new Unavailable(`No environment variables for a credential of kind ${kind}: use --format json`);
}

function postgresqlEnvironment(fields: Record<string, string>): Record<string, string> {
  const { host = "", port = "", database = "", user = "", password = "", sslmode = "" } = fields;
  const at = host.includes(":") ? `[${host}]` : host;
  const [login, secret, name] = [user, password, database].map(encodeURIComponent);
  return {
    PGHOST: host,
    PGPORT: port,
    PGDATABASE: database,
    PGUSER: user,
    PGPASSWORD: password,
    PGSSLMODE: sslmode,
    DATABASE_URL: `postgres://${login}:${secret}@${at}:${port}/${name}?sslmode=${sslmode}`,
  };
}

function awsEnvironment(fields: Record<string, string>): Record<string, string> {
  const { access_key_id = "", secret_access_key = "", session_token = "", region } = fields;
  return {
    AWS_ACCESS_KEY_ID: access_key_id,
    AWS_SECRET_ACCESS_KEY: secret_access_key,
    AWS_SESSION_TOKEN: session_token,
    // Version 1 of the AWS CLI and boto3 read AWS_DEFAULT_REGION.
    ...(region ? { AWS_REGION: region, AWS_DEFAULT_REGION: region } : {}),
  };
}

/**
 * The output of a `credential_process`, version 1, for the AWS tools.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
 */
function processCredential({ role, credential: { kind, fields } }: Issued): string {
  if (kind !== "aws")
    throw new Unavailable(
      `${role} is not an AWS role: --format aws does not support credentials of kind ${kind}`,
    );
  const { access_key_id, secret_access_key, session_token, expiration } = fields;
  return `${JSON.stringify({
    Version: 1,
    AccessKeyId: access_key_id,
    SecretAccessKey: secret_access_key,
    SessionToken: session_token,
    Expiration: expiration,
  })}\n`;
}
