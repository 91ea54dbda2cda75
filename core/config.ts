import { FormatRegistry, OptionalKind, type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { databaseUrlFault } from "../drizzle/connection/database_url.ts";
import { isTimeZone } from "../platform/clock.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { withoutPassword } from "../platform/secret.ts";
import { providersFault } from "../platform/telemetry/providers.ts";
import { telemetryVariables } from "../platform/telemetry/variables.ts";
import { type Environment, logLevels, readVariable } from "../platform/variable.ts";
import {
  oneOf,
  optional,
  seconds,
  secret,
  url,
  type Variable,
  variable,
} from "../platform/variable_kinds.ts";

/** Plugin slugs, separated by commas, or `none`. Whether the plugins exist is checked when they are selected. */
const slugs = (value?: string) => {
  const pattern = "^[a-z][a-z0-9]*(-[a-z0-9]+)*( *, *[a-z][a-z0-9]*(-[a-z0-9]+)*)*$";
  const description = "a list of plugins such as channel,webhook";
  return value === undefined
    ? optional({ pattern, description })
    : Type.String({ pattern, description, default: value });
};

const groupRule = "(ou|o|uri|user):[^,=]+=[^,=]+";

/**
 * Every variable that the service reads, except those of plugins (core/plugin/settings.ts). The table in the
 * documentation, `.env.example` and `svc server config` are generated from this list, so a variable that is not here
 * does not exist.
 */
export const variables = {
  databaseUrl: secret(
    "SVC_DATABASE_URL",
    Type.Optional(Type.String({ format: "database address" })),
    "PostgreSQL: postgres://user:password@host:5432/name",
  ),
  databaseDirectUrl: secret(
    "SVC_DATABASE_DIRECT_URL",
    Type.Optional(Type.String({ format: "database address" })),
    "PostgreSQL itself, if SVC_DATABASE_URL is the address of a pooler (PgBouncer)",
  ),
  databasePrepare: variable(
    "SVC_DATABASE_PREPARE",
    Type.Optional(Type.Boolean()),
    "Whether to use prepared statements on SVC_DATABASE_URL (by default, only without SVC_DATABASE_DIRECT_URL)",
  ),
  databasePoolSize: variable(
    "SVC_DATABASE_POOL_SIZE",
    Type.Integer({ default: 10, minimum: 2, maximum: 500 }),
    "Connections to PostgreSQL that one process may open, besides the one that listens",
  ),
  publicUrl: variable(
    "SVC_PUBLIC_URL",
    // No path: pages, cookies and the issuer's redirect are at the root of a dedicated host.
    Type.String({
      pattern: "^https?://[^\\s/@?#]+/?$",
      default: "http://127.0.0.1:8000",
      description: "an http(s) address without path, user and query, such as https://svc.example.com",
    }),
    "The address that people and clients use; every URL that the service hands out starts with it",
  ),
  domain: variable(
    "SVC_DOMAIN",
    optional({ pattern: "^[A-Za-z0-9.-]+$", description: "a domain such as example.com" }),
    "Completes a bare user name: with example.com, `alice` is alice@example.com",
  ),
  adminGroup: variable(
    "SVC_ADMIN_GROUP",
    Type.String({ default: "admin" }),
    "The group whose members are admins",
  ),
  challengeLifetime: variable(
    "SVC_CHALLENGE_LIFETIME",
    seconds(120),
    "Seconds that a sign-in request stays open",
  ),
  challengeInterval: variable(
    "SVC_CHALLENGE_INTERVAL",
    seconds(2),
    "Seconds between two polls of a client; more if thousands of terminals sign in at once",
  ),
  challengeLegacy: variable(
    "SVC_CHALLENGE_LEGACY",
    oneOf(["allow", "same_ip", "deny"], "same_ip"),
    "Clients without a verifier: allowed from anywhere, from one address only, or denied",
  ),
  rateGenerate: variable(
    "SVC_RATE_GENERATE",
    Type.Integer({ default: 300, minimum: 1 }),
    "Sign-in requests that one address may start in a minute; each user at that address may start a fifth of them",
  ),
  ratePoll: variable(
    "SVC_RATE_POLL",
    Type.Integer({ default: 6000, minimum: 1 }),
    "Polls that one address may send in a minute; a whole office may share one address",
  ),
  sso: variable(
    "SVC_SSO",
    oneOf(["oidc", "proxy"], "oidc"),
    "What signs people in: an OIDC issuer, or a proxy in front",
  ),
  oidcIssuer: variable(
    "SVC_OIDC_ISSUER",
    Type.Optional(url()),
    "The OIDC issuer, as in its discovery document",
  ),
  oidcClientId: variable(
    "SVC_OIDC_CLIENT_ID",
    Type.String({ default: "svc" }),
    "Our client id at the issuer",
  ),
  oidcClientSecret: secret(
    "SVC_OIDC_CLIENT_SECRET",
    optional(),
    "Our client secret; none for a public client",
  ),
  oidcScope: variable(
    "SVC_OIDC_SCOPE",
    Type.String({ default: "openid email profile" }),
    "Scopes to ask for",
  ),
  oidcUserClaim: variable(
    "SVC_OIDC_USER_CLAIM",
    Type.String({ default: "email" }),
    "The claim that names the user",
  ),
  oidcGroupsClaim: variable(
    "SVC_OIDC_GROUPS_CLAIM",
    Type.String({ default: "groups" }),
    "The claim that lists groups; `realm_access.roles` is the member `roles` of the claim `realm_access`",
  ),
  proxyHeader: variable(
    "SVC_PROXY_HEADER",
    Type.String({
      default: "x-forwarded-assertion",
      pattern: "^[A-Za-z0-9-]+$",
      description: "the name of a header",
    }),
    "SVC_SSO=proxy: the header in which the proxy puts its signed assertion (a JWT)",
  ),
  proxyJwksUrl: variable(
    "SVC_PROXY_JWKS_URL",
    Type.Optional(url()),
    "SVC_SSO=proxy: the proxy's public keys",
  ),
  proxyIssuer: variable("SVC_PROXY_ISSUER", optional(), "SVC_SSO=proxy: `iss` that an assertion must have"),
  proxyAudience: variable(
    "SVC_PROXY_AUDIENCE",
    optional(),
    "SVC_SSO=proxy: `aud` that an assertion must have",
  ),
  sessionLifetime: variable(
    "SVC_SESSION_LIFETIME",
    seconds(43_200, 60),
    "Seconds that a browser stays signed in; fewer if your issuer asks for the password more often",
  ),
  tokenLifetime: variable("SVC_TOKEN_LIFETIME", seconds(3600, 60), "Seconds that an access token is valid"),
  tokenAlgorithm: variable(
    "SVC_TOKEN_ALGORITHM",
    oneOf(["ES256", "Ed25519"], "ES256"),
    "How tokens are signed",
  ),
  tokenKeyFiles: variable(
    "SVC_TOKEN_KEY_FILES",
    optional(),
    "Private keys (PKCS #8 PEM), comma-separated; the first signs, all verify. Without it, keys are in the database",
  ),
  mtlsCaCerts: variable(
    "SVC_MTLS_CA_CERTS",
    optional(),
    "File of your own certificate authorities (PEM), whose certificates identify users (--mtls-ca-certs)",
  ),
  mtlsIdentity: variable(
    "SVC_MTLS_IDENTITY",
    oneOf(["email", "uri", "cn"], "email"),
    "What names the user in a certificate of these authorities: an e-mail address or a URI of its subject alternative names, or its common name",
  ),
  mtlsUriPrefix: variable(
    "SVC_MTLS_URI_PREFIX",
    optional({
      pattern: "^[a-z][a-z0-9+.-]*://[^\\s/?#]+/([^\\s?#]*/)?$",
      description: "the beginning of a URI up to a slash, such as spiffe://example.com/user/",
    }),
    "SVC_MTLS_IDENTITY=uri: what the URI starts with; the rest is the user name",
  ),
  mtlsUsage: variable(
    "SVC_MTLS_USAGE",
    Type.String({
      default: "1.3.6.1.5.5.7.3.2",
      pattern: "^[0-2](\\.\\d{1,20}){1,20}$",
      description: "an object identifier such as 1.3.6.1.5.5.7.3.2",
    }),
    "The extended key usage that a certificate of these authorities must have (by default: TLS client)",
  ),
  mtlsGroups: variable(
    "SVC_MTLS_GROUPS",
    optional({
      pattern: `^ *${groupRule}( *, *${groupRule})* *$`,
      description: "a list of rules such as ou:Platform=oncall,user:root@example.com=admin",
    }),
    "Groups of users with such a certificate: comma-separated rules `ou:`, `o:`, `uri:` or `user:`, a value of the certificate (after `uri:`, the beginning of one), `=` and a group",
  ),
  mtlsProxyHeader: variable(
    "SVC_MTLS_PROXY_HEADER",
    optional({ pattern: "^[A-Za-z0-9-]+$", description: "the name of a header, such as Client-Cert" }),
    "The header in which trusted proxies forward client certificates, and which they remove from requests of clients: Client-Cert (RFC 9440), or any name for nginx's escaped PEM. Needs --proxy-headers",
  ),
  mtlsUrl: variable(
    "SVC_MTLS_URL",
    optional({
      pattern: "^https://[^\\s/@?#]+/?$",
      description: "an https address without path, user and query, such as https://svc.example.com:8443",
    }),
    "The address at which clients authenticate with certificates (by default the host of SVC_PUBLIC_URL and --mtls-port)",
  ),
  certificateLifetime: variable(
    "SVC_CERTIFICATE_LIFETIME",
    Type.Integer({ default: 604_800, minimum: 60, maximum: 2_592_000 }),
    "Seconds for which `svc login --certificate` signs in; within them, certificates are renewed without a browser",
  ),
  keySecret: secret(
    "SVC_KEY_SECRET",
    Type.Optional(Type.String({ minLength: 32 })),
    "Encrypts keys and secrets in the database, for servers and workers: 32 characters or more, e.g. of `openssl rand -base64 48`",
  ),
  keyRotation: variable(
    "SVC_KEY_ROTATION",
    Type.Integer({ default: 30, minimum: 2 }),
    "Days after which a new signing key takes over",
  ),
  federationIssuer: variable(
    "SVC_FEDERATION_ISSUER",
    optional({
      pattern: "^https?://[^\\s/@?#]+(/[^\\s?#]*)?$",
      description: "an http(s) address without user and query, such as https://keys.example.com/svc",
    }),
    "The issuer of tokens for AWS and others, which must serve /.well-known/openid-configuration (by default SVC_PUBLIC_URL)",
  ),
  proxyHeaders: variable(
    "SVC_PROXY_HEADERS",
    Type.Boolean({ default: false }),
    "Whether to trust X-Forwarded-For (--proxy-headers)",
  ),
  trustedProxies: variable(
    "SVC_FORWARDED_ALLOW_IPS",
    Type.String({ default: "127.0.0.1,::1" }),
    "Proxies whose X-Forwarded-For is trusted with --proxy-headers: addresses and networks, comma-separated. `*` trusts every hop, so that clients can forge their address",
  ),
  pluginPackages: variable(
    "SVC_PLUGIN_PACKAGES",
    optional(),
    "npm packages with third-party plugins, comma-separated, resolved from the working directory",
  ),
  pluginTimeout: variable(
    "SVC_PLUGIN_TIMEOUT",
    Type.Integer({ default: 30, minimum: 1, maximum: 600 }),
    "Seconds that a plugin may take to answer",
  ),
  pluginMemory: variable(
    "SVC_PLUGIN_MEMORY",
    Type.Integer({ default: 512, minimum: 384, maximum: 65_536 }),
    "MiB that each process of a package of SVC_PLUGIN_PACKAGES may allocate",
  ),
  pluginDocumentResolver: variable(
    "SVC_PLUGIN_DOCUMENT_RESOLVER",
    slugs("document-matcher"),
    "Plugins that propose documents for an incident, comma-separated like those below; `none` disables a type",
  ),
  pluginParticipant: variable(
    "SVC_PLUGIN_PARTICIPANT",
    slugs("roster"),
    "Plugins that propose people and teams, and know who is on call",
  ),
  pluginDocument: variable(
    "SVC_PLUGIN_DOCUMENT",
    slugs("markdown"),
    "Plugins that keep documents; the first creates new ones, the others keep theirs",
  ),
  pluginConversation: variable(
    "SVC_PLUGIN_CONVERSATION",
    slugs("channel"),
    "Plugins that carry the messages of an incident",
  ),
  pluginParticipantGroup: variable(
    "SVC_PLUGIN_PARTICIPANT_GROUP",
    slugs("mailing-list"),
    "Plugins that keep the participants of an incident as a group",
  ),
  pluginTerm: variable("SVC_PLUGIN_TERM", slugs(), "Plugins that terms come from"),
  pluginCredential: variable(
    "SVC_PLUGIN_CREDENTIAL",
    slugs("postgresql-role,ssh-ca,oidc-token,kubernetes-token,aws-web-identity,aws-assume-role,x509-ca"),
    "Plugins that issue credentials for access roles",
  ),
  pluginApplication: variable("SVC_PLUGIN_APPLICATION", slugs(), "Plugins that applications come from"),
  timezone: variable(
    "SVC_TIMEZONE",
    Type.String({ default: "UTC", format: "timezone" }),
    "The IANA time zone of the schedule's days, e.g. Europe/Berlin",
  ),
  auditRetention: variable(
    "SVC_AUDIT_RETENTION",
    Type.Integer({ default: 365, minimum: 1, maximum: 36_500 }),
    "Days after which entries of the audit log are deleted; your auditors, or a law, may set a minimum",
  ),
  logLevel: variable("SVC_LOG_LEVEL", oneOf(logLevels, "info"), "The minimum level of log lines"),
  accessLog: variable(
    "SVC_ACCESS_LOG",
    Type.Boolean({ default: true }),
    "Whether each request is logged (--no-access-log)",
  ),
  staticDir: variable(
    "STATIC_DIR",
    optional(),
    "Folder of a built front end, served to everyone at every address outside of the API",
  ),
  ...telemetryVariables,
} satisfies Record<string, Variable>;

FormatRegistry.Set("timezone", isTimeZone);
FormatRegistry.Set("database address", (text) => databaseUrlFault(text) === undefined);

type Variables = typeof variables;
export type Config = Readonly<{ [K in keyof Variables]: Static<Variables[K]["schema"]> }>;

/**
 * Reads the whole configuration once. An empty variable counts as not set.
 * @throws ConfigurationError with every fault at once, never with a secret's value
 */
export function readConfig(environment: Environment): Config {
  const { config, faults } = parseConfig(environment);
  if (faults.length > 0) throw new ConfigurationError(faults);
  return config;
}

/**
 * The same, for callers with further checks before the faults are reported. An invalid value is replaced with its
 * default in `config`.
 */
export function parseConfig(environment: Environment): { config: Config; faults: string[] } {
  const faults: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries<Variable>(variables)) {
    const { value, fault } = readValue(environment, variable);
    if (fault) faults.push(fault);
    values[key] = fault ? Value.Default(variable.schema, undefined) : value;
  }
  const config = values as Config;
  return {
    config: Object.freeze({
      ...config,
      adminGroup: config.adminGroup.normalize("NFC"),
      publicUrl: originOf(config.publicUrl),
      mtlsUrl: config.mtlsUrl && originOf(config.mtlsUrl),
    }),
    faults,
  };
}

/** As browsers write it: without the scheme's default port. */
function originOf(publicUrl: string): string {
  return URL.parse(publicUrl)?.origin ?? publicUrl.replace(/\/+$/, "");
}

/** Returns the converted value of a variable, or its default. A fault never contains a secret's value. */
export function readValue(
  environment: Environment,
  { name, schema, secret }: Pick<Variable, "name" | "schema" | "secret">,
): { value?: unknown; fault?: string } {
  const { text, fault } = readVariable(environment, name, secret);
  if (fault) return { fault };
  const value = text === undefined ? Value.Default(schema, undefined) : Value.Convert(schema, text);
  const optionalAndMissing = value === undefined && OptionalKind in schema;
  if (optionalAndMissing || Value.Check(schema, value)) return { value };
  if (text === undefined) return { fault: `${name} is not set` };
  return {
    fault: `${name}: ${secret ? "this value" : `"${withoutPassword(text)}"`} ${expectation(schema, text)}`,
  };
}

function expectation(schema: TSchema, text: string): string {
  if (schema.anyOf) return `is not one of ${schema.anyOf.map((s: TSchema) => s.const).join(", ")}`;
  if (schema.const !== undefined) return `is not ${schema.const}`;
  if (schema.type === "integer") {
    const { minimum, maximum } = schema;
    const limits = [
      ...(minimum === undefined ? [] : [`at least ${minimum}`]),
      ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ];
    return `is not a whole number${limits.length > 0 ? ` of ${limits.join(" and ")}` : ""}`;
  }
  if (schema.type === "number") return "is not a number, or out of range";
  if (schema.type === "boolean") return "is neither true nor false";
  if (schema.format === "timezone") return "is not an IANA time zone such as UTC or Europe/Berlin";
  if (schema.format === "metric providers") return providersFault(text) ?? "";
  if (schema.format === "database address") return databaseUrlFault(text) ?? "";
  if (text.length < schema.minLength) return `is shorter than ${schema.minLength} characters`;
  if (text.length > schema.maxLength) return `is longer than ${schema.maxLength} characters`;
  // A regular expression does not help an operator. A plugin's own setting has a description for people.
  return schema.description ? `is not ${schema.description}` : "does not have the required form";
}
