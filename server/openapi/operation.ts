import { STATUS_CODES } from "node:http";
import { OptionalKind } from "@sinclair/typebox";
import { idText, limitText } from "../http/schema.ts";
import type { Answer, Operation, Parameter, Schema } from "./types.ts";

/** `incident_types` → `incident type` */
export function singular(collection: string): string {
  const words = collection.replaceAll("_", " ");
  return words.endsWith("ies") ? `${words.slice(0, -3)}y` : words.replace(/(?<!s)s$/, "");
}

const article = (noun: string) => `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;

/** Describes an operation by its method and path, unless its route has a summary. */
function summaryOf(method: string, path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "");
  const last = segments.at(-1) ?? "";
  const collection = last.startsWith("{") ? (segments.at(-2) ?? "") : last;
  const one = article(singular(collection));
  const ofOne = last.startsWith("{");
  const many = collection.replaceAll("_", " ");
  if (method === "get") return ofOne ? `Get ${one}` : `List ${many}`;
  if (method === "put") return ofOne ? `Replace ${one}` : `Replace the ${many}`;
  if (method === "delete") return `Delete ${one}`;
  return path.endsWith("/") ? `Create ${one}` : capital(many);
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** `GET /incidents/{incident_id}/events/` → `get_incidents_by_incident_id_events`: stable while the path is. */
function operationIdOf(method: string, path: string): string {
  const words = path.replace(/[{]/g, "by_").match(/\w+/g) ?? [];
  return [method, ...words].join("_");
}

/** Completes Elysia's description of a route: names, permissions and error responses. */
export function describeOperation(method: string, path: string, operation: Operation): Operation {
  const { responses, requestBody, parameters = [], ...rest } = operation;
  // A route that asks for a token says that it refuses without one; server/routes.test.ts holds it to that.
  const closed = responses["401"] !== undefined && !path.startsWith("/noauth/");
  // The protocol's routes list each answer themselves.
  const refused = path.startsWith("/noauth/") ? undefined : (responses["401"] ?? responses["400"]);
  const takesKey = method === "post" && responses["422"] !== undefined;
  const headers = takesKey ? [idempotencyKey] : method === "put" ? [ifMatch] : [];
  const described = Object.entries(responses).map(([status, answer]) => [
    status,
    describeAnswer(status, answer),
  ]);
  return {
    summary: summaryOf(method, path),
    ...rest,
    operationId: operationIdOf(method, path),
    tags: [capital((path.match(/[a-z][a-z_-]*/)?.[0] ?? "").replaceAll("_", " "))],
    security: closed ? [{ token: [] }] : [],
    parameters: [...parameters.map(describeParameter), ...headers],
    ...(requestBody ? { requestBody: { ...requestBody, required: !mayBeLeftOut(requestBody) } } : {}),
    responses: {
      ...Object.fromEntries(described),
      ...(refused ? { default: { ...describeAnswer("401", refused), description: "Any other error" } } : {}),
    },
  };
}

/** Elysia describes every body as required. */
function mayBeLeftOut({ content }: NonNullable<Operation["requestBody"]>): boolean {
  const { schema } = content["application/json"] ?? {};
  return schema !== undefined && OptionalKind in schema;
}

const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description: "A key of your choice, new for each operation: the request is executed once in 24 hours",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
};

const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  description: "The `version` in the body, in quotes; `*` is accepted and ignored",
  schema: { type: "string" },
};

/**
 * Describes numeric parameters as numbers. They are texts here because Elysia's own numbers accept too much
 * (server/http/schema.ts).
 */
function describeParameter(parameter: Parameter): Parameter {
  const { description, ...schema } = parameter.schema;
  const described = description === undefined ? {} : { description };
  const number = numbers[String(schema.pattern)];
  return { ...parameter, ...described, schema: number ?? schema };
}

const numbers: Record<string, Schema> = {
  [idText.pattern!]: { type: "integer", format: "int64", minimum: 1, maximum: 999_999_999_999_999 },
  [limitText.pattern!]: { type: "integer", minimum: 1, maximum: 200, default: 50 },
};

function problem(description: string): Answer {
  const schema = { $ref: "#/components/schemas/Problem" };
  return { description, content: { "application/problem+json": { schema } } };
}

function describeAnswer(status: string, answer: Answer): Answer {
  const { properties } = answer.content?.["application/json"]?.schema ?? {};
  const what = meanings[status] ?? STATUS_CODES[status] ?? "";
  if (properties?.request_id && properties.title) return problem(what);
  const headers = headersOf(status, properties);
  return {
    description: what,
    ...(headers ? { headers } : {}),
    ...(status === "204" || !answer.content ? {} : { content: answer.content }),
  };
}

function headersOf(status: string, properties?: Record<string, Schema>): Answer["headers"] {
  const tag = { description: "The version of the record, in quotes", schema: { type: "string" } };
  if (status === "200" && properties?.version) return { ETag: tag };
  if (status !== "201") return undefined;
  const location = { description: "The path of the new record, if it has one", schema: { type: "string" } };
  return { Location: location, ...(properties?.version ? { ETag: tag } : {}) };
}

const meanings: Record<string, string> = {
  200: "Done",
  201: "Created",
  204: "Done",
  400: "Invalid request; `field` names the invalid field",
  401: "No token, or one that is no longer valid",
  403: "You may not do this",
  404: "Not found, or you may not read it",
  409: "Conflict: the record has changed since, is in another state, or is still in use",
  410: "It has expired",
  422: "This Idempotency-Key was used for another request",
  429: "Too many requests: wait for Retry-After seconds",
  503: "A system that this needs does not respond",
};
