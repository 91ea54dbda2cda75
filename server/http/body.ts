import { Elysia, t } from "elysia";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { closed } from "./schema.ts";
import { BodyTooLarge, largestBytes, largestTextBytes, readBody, textRoute } from "./size.ts";

/** Names with a special meaning: Elysia converts an invalid value to text with the value's own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/** Stands for a body that is not JSON. It is not an object, so no schema accepts it. */
const noJson = "no JSON";

/** The body schema of a request whose path says everything. */
export const nothing = t.Optional(t.Object({}, closed));

/** Whether a media type, with its parameters or without, is JSON (RFC 9110, 8.3.1). */
export function isJson(contentType: string): boolean {
  return /^application\/json[\t ]*(;|$)/i.test(contentType);
}

export const isForm = (contentType: string) =>
  /^application\/x-www-form-urlencoded[\t ]*(;|$)/i.test(contentType);

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would replace invalid bytes with U+FFFD, and we would store that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Turns off Elysia's parsers, which read bodies of any size, and before a hook of the route can refuse the request.
 * A route reads its body with `bodyOf` in a `transform` hook, which also runs before validation.
 */
export const noParsers = new Elysia({ name: "no parsers" }).onParse({ as: "global" }, () => null);

/**
 * Reads and parses a body: a JSON object, a form, or `noJson` for anything else.
 *
 * Multipart forms are not read. Elysia would build objects from the field names and parse the texts, so that
 * `a[99999999]` from an unauthenticated client blocks the server for a minute.
 *
 * With a reviver, JSON.parse fails beyond some thousand levels. That is intended: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 *
 * @throws SvcError, BodyTooLarge
 */
export async function bodyOf(request: Request, route: string): Promise<unknown> {
  try {
    return await parseBody(request, request.headers.get("content-type") ?? "", route);
  } catch (cause) {
    if (cause instanceof SvcError || cause instanceof BodyTooLarge) throw cause;
    throw new SvcError("invalid_input", "The body does not match its Content-Type", { cause });
  }
}

async function parseBody(request: Request, contentType: string, route: string): Promise<unknown> {
  if (request.body === null) return undefined;
  if (request.headers.has("content-encoding"))
    throw new InvalidInput(
      "Content-Encoding",
      "Send the body without Content-Encoding: it is not decompressed",
    );
  if (!isJson(contentType)) {
    const bytes = await readBody(request, largestBytes);
    if (bytes.length === 0) return null;
    return isForm(contentType) ? fieldsOf(utf8.decode(bytes)) : noJson;
  }
  const bytes = await readBody(request, route === textRoute ? largestTextBytes : largestBytes);
  const text = utf8.decode(bytes);
  if (bytes.length > largestBytes) return flat(JSON.parse(text));
  // An empty chunked body. Elysia reports it missing where a body is required.
  if (text === "") return undefined;
  const value: unknown = JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
  // No route takes anything else, and Elysia does not check an optional body that it finds empty, such as `[]`.
  if (!isRecord(value)) throw new InvalidInput("body", "The field body must be an object");
  return value;
}

/** A repeated field becomes a list, which no form accepts. */
function fieldsOf(text: string): Record<string, string | string[]> {
  const fields = new URLSearchParams(text);
  const valuesOf = (name: string) => {
    const [value = "", ...more] = fields.getAll(name);
    return more.length === 0 ? value : [value, ...more];
  };
  return Object.fromEntries([...new Set(fields.keys())].map((name) => [name, valuesOf(name)]));
}

/** Accepts only an object with a few texts: checking a large one takes long, and strangers can send them. */
function flat(value: unknown): unknown {
  const isFlat = isRecord(value) && Object.keys(value).length <= 8;
  if (!isFlat || Object.values(value).some((one) => typeof one === "object" && one !== null))
    throw new SyntaxError("not an object of a few texts");
  if (Object.keys(value).some((name) => methods.has(name)))
    throw new SyntaxError("a field is named like a method");
  return value;
}

/** The body's media type is not accepted by an API route. This is a concern of HTTP only. */
export class WrongMediaType extends Error {
  constructor() {
    super("Send the body as application/json, and say so in Content-Type");
  }
}

/**
 * Elysia also turns a form into an object. Some routes would take the fields they know (`curl -d` sends a form) and
 * report the others as missing. A DELETE takes no body at all.
 *
 * @throws WrongMediaType
 */
export function refuseOtherMedia({ method, headers }: Request, body: unknown): void {
  if (method === "GET" || method === "HEAD" || method === "DELETE") return;
  if (isJson(headers.get("content-type") ?? "")) return;
  const isThere = body === undefined ? hasContent(headers) : body !== null;
  if (isThere) throw new WrongMediaType();
}

function hasContent(headers: Headers): boolean {
  return headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
}
