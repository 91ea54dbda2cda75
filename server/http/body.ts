import { Elysia, t } from "elysia";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { closed } from "./schema.ts";
import {
  BodyTooLarge,
  largestBytes,
  largestFormBytes,
  largestTextBytes,
  readBody,
  textRoute,
} from "./size.ts";

/** Names with a special meaning: Elysia converts an invalid value to text with the value's own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/**
 * More than any route accepts, and few enough to validate: a body of 1 MiB may contain half a million values, each of
 * which would cost more than its bytes.
 */
const mostValues = 10_000;
/** Elysia's validator takes seconds for 100,000 levels in 200 KB. */
const mostLevels = 100;
/** The forms of the sign-in have two fields: a token and a decision. */
const mostFields = 8;

/** The body schema of a request whose path says everything. */
export const nothing = t.Optional(t.Object({}, closed));

/** Media types, with their parameters or without (RFC 9110, 8.3.1). */
const json = /^application\/json[\t ]*(;|$)/i;
const form = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i;

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would replace invalid bytes with U+FFFD, and we would store that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Turns off Elysia's parsers, which read bodies of any size, and before a hook of the route can refuse the request.
 * A route reads its body with `readJson` in a `transform` hook, which also runs before validation, or with `readForm` in
 * its handler.
 */
export const noParsers = new Elysia({ name: "no parsers" }).onParse({ as: "global" }, () => null);

/** The body's media type is not accepted by an API route. This is a concern of HTTP only. */
export class WrongMediaType extends Error {
  constructor() {
    super("Send the body as application/json, and say so in Content-Type");
  }
}

/**
 * Reads a JSON object: no route takes anything else, and Elysia does not check an optional body that it finds empty,
 * such as `[]`.
 *
 * @returns undefined if there is no body
 * @throws SvcError, WrongMediaType (`curl -d` sends a form), BodyTooLarge
 */
export const readJson = (request: Request, route: string): Promise<unknown> =>
  readable(async () => {
    const bytes = await bytesOf(request, route === textRoute ? largestTextBytes : largestBytes);
    if (bytes.length === 0) return undefined;
    if (!json.test(typeOf(request))) throw new WrongMediaType();
    const value: unknown = JSON.parse(utf8.decode(bytes));
    if (!isRecord(value)) throw new InvalidInput("body", "The field body must be an object");
    refuseLarge(value);
    return value;
  });

/**
 * Reads a form of at most `largest` bytes and `most` fields, by default of the sign-in. Call it last: everything that does not need the form is checked before.
 *
 * Multipart forms are not read. Elysia would build objects from the field names and parse the texts, so that
 * `a[99999999]` from an unauthenticated client blocks the server for a minute.
 *
 * @throws SvcError, BodyTooLarge
 */
export const readForm = (
  request: Request,
  largest = largestFormBytes,
  most = mostFields,
): Promise<Map<string, string>> =>
  readable(async () => {
    if (!form.test(typeOf(request)))
      throw new InvalidInput("body", "Send the form as application/x-www-form-urlencoded");
    const text = utf8.decode(await bytesOf(request, largest));
    const pairs = text.split("&", most + 1);
    if (pairs.length > most) throw new InvalidInput("body", `The form has more than ${most} fields`);
    const fields = new Map<string, string>();
    for (const [name, value] of new URLSearchParams(text)) {
      if (fields.has(name)) throw new InvalidInput("body", "The form has a field twice");
      fields.set(name, value);
    }
    return fields;
  });

/**
 * Call it before a request changes anything. If more bytes follow a request in the same packet (an empty line, another
 * request), Bun answers 400 or closes the connection as soon as its handler waits for anything. The answer to the
 * request would be lost, so it must not run. Over TLS, a whole second request is noticed only if the client closes in time:
 * Bun sends its close_notify and waits for the answer, and nothing shows it before.
 *
 * @throws InvalidInput if the connection has ended
 */
export async function requireConnection({ signal }: Request): Promise<void> {
  await new Promise(setImmediate);
  if (signal.aborted) throw new InvalidInput("body", "The connection ended, or more followed the request");
}

/** Turns errors of parsers, and of a client that disconnects, into one of ours. */
async function readable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof SvcError || cause instanceof WrongMediaType || cause instanceof BodyTooLarge)
      throw cause;
    throw new SvcError("invalid_input", "The body does not match its Content-Type", { cause });
  }
}

const typeOf = ({ headers }: Request) => headers.get("content-type") ?? "";

async function bytesOf(request: Request, largest: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array();
  if (request.headers.has("content-encoding"))
    throw new InvalidInput(
      "Content-Encoding",
      "Send the body without Content-Encoding: it is not decompressed",
    );
  return await readBody(request, largest);
}

/** Refuses a body with more values or levels than any route accepts, before anything looks at each of them. */
function refuseLarge(body: object): void {
  let values = 0;
  const walk = (value: unknown, level: number): void => {
    if (typeof value !== "object" || value === null) return;
    if (level > mostLevels) throw new InvalidInput("body", `The body has more than ${mostLevels} levels`);
    const names = Array.isArray(value) ? undefined : Object.keys(value);
    values += names?.length ?? (value as unknown[]).length;
    if (values > mostValues)
      throw new InvalidInput("body", `The body has more than ${mostValues.toLocaleString("en")} values`);
    if (names?.some((name) => methods.has(name))) throw new SyntaxError("a field is named like a method");
    for (const one of Object.values(value)) walk(one, level + 1);
  };
  walk(body, 1);
}
