import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";
import { version } from "../../package.json";
import { problemSchema } from "../http/error.ts";
import { hoistSchemas } from "./components.ts";
import { describeOperation } from "./operation.ts";
import type { OpenApiDocument, Operation, Parameter, PathItem, Schema } from "./types.ts";

/** Sign-in pages and their icon, and what only the issuer calls: not meant for clients. */
export const pages: readonly (string | RegExp)[] = [
  "/icon.svg",
  "/sign_in/callback",
  "/backchannel_logout",
  /^\/approve\//,
  "/",
  /^\/app(\/|$)/,
  "/challenge:validator/:challengeToken",
  // A catch-all that answers 404.
  "/noauth/*",
];

/** The resources, in the order in which a reader meets them. */
const tags: Readonly<Record<string, string>> = {
  Incidents: "Incidents from report to closure, and everything that belongs to them",
  Tasks: "The work to be done in incidents",
  Documents: "Documents of incidents, runbooks and templates",
  Search: "Full text over everything that you may read",
  Stats: "Numbers of incidents, how long they took and what they cost",
  Individuals: "People, whether they sign in or not",
  Teams: "Groups of people who are contacted together",
  Services: "Services, and who is on call for them",
  "Incident types": "Kinds of incidents, and who commands them",
  "Incident priorities": "How urgent an incident is, and how often it is reported on",
  Terms: "Words to look for in documents and descriptions",
  Definitions: "The meanings of terms",
  Applications: "Software that incidents affect",
  Access: "Roles that can be requested, requests for them, and leases: credentials that were issued",
  Api: "AWS roles for Weep and other clients of ConsoleMe, with the errors that they expect",
  Plugins: "Installed and enabled plugins",
  Healthcheck: "Whether this process can serve requests",
  Whoami: "The user of an access token",
  Tokens: "Access tokens",
  "Sign ins": "What users are signed in with: browsers, access tokens of terminals, certificates",
  Certificates: "Client certificates, which authenticate over mutual TLS",
  Audit: "Who did what, for admins",
  "Well-known": "Public keys that verify our tokens",
  Noauth: "Sign-in from a terminal: the challenge protocol",
};

const about = `Incident management: incidents with their participants, documents, tasks, reports and timeline.

Send an access token (\`svc token\` prints one) as \`Authorization: Bearer <token>\`. Paths work with and without a
trailing slash. Bodies are \`application/json\` (otherwise 415). Unknown fields and parameters are refused, and the error
names them.

**Lists** return \`{"items": [...], "next_cursor": ...}\`. Pass \`next_cursor\` as \`cursor\` to get the next page; on the last
page it is null. Pages stay consistent while records are added or deleted.

**Writes.** A \`PUT\` replaces all fields and includes the \`version\` it is based on: 409 if the record has changed since.
\`If-Match\` may repeat the \`ETag\` of that version, and nothing else. The \`ETag\` says nothing about other records of which
an answer shows parts, so a \`GET\` is always answered in full, and answers must not be cached. A record can be sent back as
\`GET\` returned it: fields that a \`PUT\` does not replace are checked for their type and otherwise ignored. A \`POST\` with an \`Idempotency-Key\` is
executed once in 24 hours, however often it is sent; its response is repeated as long as you may read it. Only admins delete.

**Errors** are problem details (RFC 9457) with a stable \`code\`. What you may not read is answered as if it did not exist.`;

/**
 * Builds the OpenAPI 3.1 document of `app` from the schemas that validate requests and answers, so that it cannot
 * deviate from them. Routes of pages are left out.
 */
export function openApiDocument(app: AnyElysia, publicUrl: string): OpenApiDocument {
  const exclude = { paths: [...pages], staticFile: false };
  const { paths } = toOpenAPISchema(inJson(app), exclude, undefined, undefined, "3.1.2");
  const operations: Record<string, PathItem> = {};
  for (const [path, item] of Object.entries(paths as unknown as Record<string, PathItem>)) {
    if (path === "/noauth/v1/{operation}/{argument}") Object.assign(operations, challengePaths(item.get!));
    else operations[path] = { ...item };
  }
  for (const [path, item] of Object.entries(operations)) {
    for (const [method, operation] of Object.entries(item))
      item[method] = describeOperation(method, path, operation);
  }
  addDetails(app, operations);
  const hoisted = hoistSchemas(withNullInEnums(operations));
  const named = new Set(
    Object.values(hoisted.paths).flatMap((item) => Object.values(item).flatMap((one) => one.tags ?? [])),
  );
  return {
    // Generators of clients refuse later versions, which differ in explanations only.
    openapi: "3.1.1",
    info: { title: "svc", version, description: about },
    servers: [{ url: publicUrl }],
    tags: Object.entries(tags)
      .filter(([name]) => named.has(name))
      .map(([name, description]) => ({ name, description })),
    // Linters reject a trailing slash; both spellings work.
    paths: mapKeys(hoisted.paths, (path) => path.replace(/(?<=.)\/$/, "")),
    components: {
      schemas: { Problem: problemSchema as unknown as Schema, ...hoisted.schemas },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "From `svc token`" },
      },
    },
  };
}

/** Elysia's generator knows only its own parsers, and omits bodies that server/http/body.ts parses. */
function inJson(app: AnyElysia): AnyElysia {
  const routes = app.routes.map((route) => ({
    ...route,
    hooks: { ...route.hooks, parse: [{ fn: "json" }] },
  }));
  return Object.create(app, { getGlobalRoutes: { value: () => routes } }) as AnyElysia;
}

/** Adds the responses and parameters in a route's `detail`. Elysia's generator drops them where there is a schema. */
function addDetails(app: AnyElysia, operations: Record<string, PathItem>): void {
  for (const { method, path, hooks } of app.routes) {
    const operation = operations[path.replaceAll(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
    const { responses = {}, parameters = [] } = (hooks.detail ?? {}) as Partial<Operation>;
    if (!operation) continue;
    Object.assign(operation.responses, responses);
    const known = new Set(operation.parameters?.map(({ name }) => name));
    operation.parameters = [
      ...(operation.parameters ?? []),
      ...parameters.filter(({ name }) => !known.has(name)),
    ];
  }
}

/** Elysia's generator adds null to the `type` of a nullable constant, but not to its `enum`. */
function withNullInEnums<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withNullInEnums) as T;
  if (typeof value !== "object" || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNullInEnums(one)]));
  const { type, enum: constants } = schema;
  if (Array.isArray(type) && type.includes("null") && Array.isArray(constants) && !constants.includes(null))
    schema.enum = [...constants, null];
  return schema as T;
}

/** One route for Elysia, whose router takes a colon anywhere in a segment for a parameter, but two in the document. */
function challengePaths({ responses }: Operation): Record<string, PathItem> {
  const { anyOf } = responses["200"]!.content!["application/json"]!.schema;
  const [pending, success, generated] = anyOf as [Schema, Schema, Schema];
  const path = (summary: string, parameter: Pick<Parameter, "name" | "description">, schema: Schema) => ({
    get: {
      summary,
      parameters: [{ ...parameter, in: "path" as const, required: true, schema: { type: "string" } }],
      responses: { ...responses, "200": { description: "", content: { "application/json": { schema } } } },
    },
  });
  const user = { name: "userName", description: "The user who wants to sign in" };
  const challenge = { name: "challengeToken", description: "The end of `polling_url`" };
  return {
    "/noauth/v1/challenge_generator/{userName}": path("Create a challenge", user, generated),
    "/noauth/v1/challenge_poller/{challengeToken}": path("Get the state of a challenge", challenge, {
      anyOf: [pending, success],
    }),
  };
}

function mapKeys<V>(record: Record<string, V>, to: (key: string) => string): Record<string, V> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [to(key), value]));
}
