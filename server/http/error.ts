import { Type } from "@sinclair/typebox";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { Elysia, t } from "elysia";
import { errorCode, reasonOf, transience } from "../../drizzle/database_error.ts";
import {
  InProgress,
  InvalidInput,
  InvalidToken,
  noRoute,
  SvcError,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from "../../platform/errors.ts";
import { messagePage } from "../../web/pages/message.tsx";
import { signInErrorPage, unknownPage } from "../../web/pages/sign_in.tsx";
import type { Deps } from "../deps.ts";
import { appPage, isLink } from "../page/app_page.ts";
import { isWeepPath, weepProblem } from "../weep/refusal.ts";
import { WrongMediaType } from "./body.ts";
import { type FailureLog, failureLog, requestIdOf } from "./log.ts";
import { type Routes, resolveMethodError, WrongMethod } from "./methods.ts";
import { BodyTooLarge } from "./size.ts";

const statuses: Record<SvcError["code"], number> = {
  invalid_input: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  idempotency_key_reused: 422,
  too_many_requests: 429,
  unavailable: 503,
  configuration: 500,
  internal: 500,
};

const titles: Record<number, string> = {
  400: "Invalid request",
  401: "Not signed in",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  409: "Conflict",
  413: "The body is too large",
  415: "Unsupported media type",
  422: "Invalid request",
  429: "Too many requests",
  500: "Internal error",
  503: "Temporarily unavailable",
};

/** RFC 9457 problem details, with our stable `code` and the id to find in the log. */
export const problemSchema = t.Object({
  type: t.String(),
  title: t.String(),
  status: Type.Integer(),
  detail: t.String(),
  code: t.String(),
  field: t.Optional(t.String()),
  request_id: t.String(),
});

/** Refusals of a collection's routes, and of a record's. */
export const refusals = { 400: problemSchema, 401: problemSchema, 403: problemSchema };
export const refusalsOfPost = { ...refusals, 409: problemSchema, 422: problemSchema };
export const refusalsOfOne = { ...refusals, 404: problemSchema };
export const refusalsOfChange = { ...refusalsOfOne, 409: problemSchema };
/** Those of a list within a record, and of a POST within or to a record. */
export const refusalsWithin = { 400: problemSchema, 401: problemSchema, 404: problemSchema };
export const refusalsOfPostWithin = { ...refusalsOfChange, 422: problemSchema };

/** What may be disclosed about an error: status, code and our own sentence, never a message from a lower layer. */
export interface Fault {
  status: number;
  code: SvcError["code"] | "method_not_allowed" | "unsupported_media_type" | "body_too_large";
  detail: string;
  field?: string;
  headers: Record<string, string>;
}

/**
 * The one place where a failure becomes HTTP. An unexpected error is `internal`: it is logged, and the caller gets the
 * request id. Elysia's own errors are mapped by their code, because their messages contain values (a password, a
 * token).
 */
export function faultOf(error: unknown, log: FailureLog, requestId: string): Fault {
  if (error instanceof WrongMethod) {
    const headers = { allow: error.allowed };
    return { status: 405, code: "method_not_allowed", detail: error.message, headers };
  }
  if (error instanceof BodyTooLarge) {
    const headers = { connection: "close" };
    return { status: 413, code: "body_too_large", detail: error.message, headers };
  }
  if (error instanceof WrongMediaType)
    return { status: 415, code: "unsupported_media_type", detail: error.message, headers: {} };
  const known = error instanceof SvcError ? error : (fromElysia(error) ?? fromDatabase(error));
  if (!known || known.code === "configuration" || known.code === "internal") {
    log.error({ err: error, request_id: requestId }, "request failed");
    const ours = known?.code === "internal" ? `${known.detail}. ` : "";
    return {
      status: 500,
      code: "internal",
      detail: `${ours}The server's log has the details under this request id`,
      headers: {},
    };
  }
  if (known.code === "unavailable")
    log.warn({ err: error, ...reasonOf(error), request_id: requestId }, "request failed");
  const headers: Record<string, string> = {};
  // A balancer of connections may lead the next one to a server that is ready.
  if (known.code === "unavailable") headers.connection = "close";
  if (known instanceof TooManyRequests || known instanceof InProgress)
    headers["retry-after"] = String(known.retryAfter);
  // RFC 6750, 3.1: without a token, the answer has no error.
  if (known.code === "unauthenticated")
    headers["www-authenticate"] =
      `Bearer realm="svc"${known instanceof InvalidToken ? ', error="invalid_token"' : ""}`;
  return {
    status: statuses[known.code],
    code: known.code,
    detail: known.detail,
    ...(known instanceof InvalidInput ? { field: known.field } : {}),
    headers,
  };
}

/** The database refuses us, or is not there (SQLSTATE class 28, 3D000, 55000). Other outages may pass: see transience. */
const databaseGone = /^(28\w{3}|3D000|55000)$/;

/** The database answers but cannot store anything: no disk space or memory (class 53), a replica, an I/O error. */
const databaseStuck: Record<string, string> = {
  "25006": "The database is read-only at the moment, so nothing can be saved",
  "53000": "The database has run out of resources",
  "53100": "The disk of the database is full, so nothing can be saved",
  "53200": "The database has run out of memory",
  "58030": "The database cannot read or write its disk",
};

/** U+0000, or half of a pair of surrogates. */
const unstorable = /^(22021|22P05)$/;

/** An error of the database as ours. */
export function fromDatabase(error: unknown): SvcError | undefined {
  const options = { cause: error };
  const noAnswer = () => new Unavailable("The database does not answer: try again in a moment", options);
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = errorCode(cause) ?? "";
    if (databaseGone.test(code)) return noAnswer();
    const stuck = databaseStuck[code];
    if (stuck)
      return new Unavailable(`${stuck}. Tell the people who run this service, and try again later`, options);
    if (unstorable.test(code))
      return new InvalidInput("text", "A text contains a character that cannot be stored");
  }
  switch (transience(error)) {
    case "outage":
      return noAnswer();
    case "contention":
      return new Unavailable("Another request changed the same data: try again in a moment", options);
    default:
      return undefined;
  }
}

/** An unknown field or parameter. A name that cannot be one of ours is not echoed, since it may contain anything. */
export function unknownName(where: "body" | "query", name: string | undefined): InvalidInput {
  const what = where === "body" ? "field" : "parameter";
  if (name === undefined || !/^[\w.-]{1,64}$/.test(name))
    return new InvalidInput(where, `There is an unknown ${what}`);
  return new InvalidInput(name, `The ${what} ${name} is unknown`);
}

/** What an error says about the schema that a value violates. */
interface Violated {
  type?: string;
  const?: unknown;
  anyOf?: Violated[];
  description?: string;
  format?: string;
  maxLength?: number;
  minLength?: number;
  maxItems?: number;
  maximum?: number;
  minimum?: number;
}

/** A validation error from TypeBox. */
export interface Broken {
  path?: string;
  type?: number;
  value?: unknown;
  /** For a union, the errors of each variant. */
  errors?: Iterable<Broken>[];
  schema?: Violated;
}

/** For a value of the right type, the limit that it violates. */
function limitBroken({ type, schema = {} }: Broken): string | undefined {
  switch (type) {
    case ValueErrorType.StringMaxLength:
      return `is too long: at most ${schema.maxLength} characters`;
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1 ? "is empty" : `is too short: at least ${schema.minLength} characters`;
    case ValueErrorType.StringFormat:
      return schema.format === "date-time"
        ? "must be a time such as 2026-11-20T12:00:00Z"
        : "has the wrong format";
    case ValueErrorType.StringPattern:
      return `has the wrong format${schema.description === undefined ? "" : `: ${schema.description}`}`;
    case ValueErrorType.ArrayMaxItems:
      return `has too many entries: at most ${schema.maxItems}`;
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return `is too large: at most ${schema.maximum}`;
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return `is too small: at least ${schema.minimum}`;
    default:
      return undefined;
  }
}

/** Of a union, the error of the variant that the value was meant for, if it can be told. */
function innermost(broken: Broken): Broken {
  const variants = (broken.errors ?? []).flatMap((errors) => [...errors].slice(0, 1)).map(innermost);
  return variants.find((one) => one.path !== broken.path || limitBroken(one) !== undefined) ?? broken;
}

const typeNames: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  integer: "an integer",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a string",
};

/** What a schema accepts: constants, then types. */
function acceptedBy(schema: Violated): string[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(acceptedBy);
  if (schema.const !== undefined) return [String(schema.const)];
  return [typeNames[schema.type ?? ""] ?? "another type"];
}

/** Says what is wrong with a value. Never echoes the value, which may be a secret. */
function violation(broken: Broken): string {
  if (broken.value === undefined) return "is missing";
  const limit = limitBroken(broken);
  if (limit !== undefined) return limit;
  const accepted = acceptedBy(broken.schema ?? {});
  return `must be ${accepted.length > 2 ? `one of ${accepted.join(", ")}` : accepted.join(" or ")}`;
}

function fromElysia(error: unknown): SvcError | undefined {
  const { code, all } = (error ?? {}) as { code?: unknown; all?: Broken[] };
  if (code === "NOT_FOUND") return new SvcError("not_found", noRoute);
  // An answer that violates its own schema is our fault, not the caller's.
  const { type } = (error ?? {}) as { type?: string };
  if (code === "VALIDATION" && type !== "response") {
    return violationOf(all?.[0] ?? {}, type === "query" ? "query" : "body");
  }
  return undefined;
}

/** A validation error as ours. It never contains the value. */
export function violationOf(error: Broken, where: "body" | "query" = "body"): InvalidInput {
  const broken = innermost(error);
  const named = broken.path?.replace(/^\//, "").replaceAll("/", ".") || undefined;
  if (broken.type === ValueErrorType.ObjectAdditionalProperties) return unknownName(where, named);
  const field = named ?? where;
  return new InvalidInput(field, `The field ${field} ${violation(broken)}`);
}

/** What Elysia turns into a Response. It would copy a Response once more. */
interface PlainAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/**
 * Builds the answer to a failed request to `path`, in the format of its reader: a page for browsers at our pages, an
 * object with a text `status` for clients of the challenge protocol (Weep reads nothing else), problem details for the
 * rest. All three are here because an application-level error hook in Elysia runs before those of its parts.
 */
export function errorAnswer(
  error: unknown,
  path: string,
  requestId: string,
  log: FailureLog,
): Response | PlainAnswer {
  const fault = faultOf(error, log, requestId);
  if (/^\/(approve|sign_in|challenge[:_]validator)\//.test(path)) {
    // The cause says why single sign-on failed: not for the page, but operators need it.
    if (fault.code === "unauthenticated")
      log.warn({ err: error, request_id: requestId }, "nobody was signed in");
    return pageOf(fault, path, requestId);
  }
  if (isOfApp(path)) return pageOf(fault, path, requestId);
  const { status, code, detail, field } = fault;
  const isProtocol = path.startsWith("/noauth/");
  const isWeep = isWeepPath(path);
  const body = isProtocol
    ? { status: code, code, detail, field, request_id: requestId }
    : isWeep
      ? weepProblem(error, fault, requestId)
      : { type: "about:blank", title: titles[status], status, detail, code, field, request_id: requestId };
  const headers = {
    "content-type": isProtocol || isWeep ? "application/json" : "application/problem+json",
    "cache-control": "no-store",
    ...fault.headers,
  };
  return { status, headers, body: JSON.stringify(body) };
}

const isOfApp = (path: string) => path === "/app" || path.startsWith("/app/");

/** Like the page for a record that does not exist, for one that is hidden. */
function pageOf({ status, detail, headers: all }: Fault, path: string, requestId: string): Response {
  const title = titles[status] ?? "Something went wrong";
  // A page asks for no token: its reader signs in elsewhere.
  const { "www-authenticate": _, ...headers } = all;
  if (status === 503) headers["retry-after"] ??= "5";
  const options = { status, headers };
  if (!isOfApp(path))
    return status === 404 ? unknownPage() : signInErrorPage({ title, detail, path, requestId }, options);
  const link = status === 429 || status === 503 ? (["", "Try again"] as const) : undefined;
  return messagePage({ title, detail: status === 500 ? `${detail}: ${requestId}` : detail, link }, options);
}

/**
 * Answers every request that failed or matched no route. All of it is here: an application-level error hook runs before
 * those of its parts, in whatever order they were added.
 */
export function answerErrors(deps: Pick<Deps, "log" | "clock" | "config">, routes: Routes) {
  const failures = failureLog(deps);
  const methodError = resolveMethodError(routes);
  return new Elysia({ name: "errors" })
    .onStop(() => failures.report())
    .onError({ as: "global" }, ({ error, request, path, route, set }) => {
      const resolved = methodError(error, request, path, route);
      const isStranger = resolved instanceof Unauthenticated && isLink(path);
      if (isStranger) set.headers.vary = "Accept";
      const answer =
        resolved instanceof Response
          ? resolved
          : ((isStranger ? appPage(request, path) : undefined) ??
            errorAnswer(resolved, path, requestIdOf(set), failures));
      // For the log: Elysia has set a status of its own.
      set.status = answer.status;
      if (answer instanceof Response) return answer;
      Object.assign(set.headers, answer.headers);
      return answer.body;
    });
}
