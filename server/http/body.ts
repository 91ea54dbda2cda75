import { Elysia, t } from "elysia";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { closed } from "./schema.ts";
import { BodyTooLarge, largestBytes, largestTextBytes, readBody, textRoute } from "./size.ts";

/** Names with a special meaning: Elysia converts an invalid value to text with the value's own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/** The body schema of a request whose path says everything. */
export const nothing = t.Optional(t.Object({}, closed));

/** Media types, with their parameters or without (RFC 9110, 8.3.1). */
const json = /^application\/json[\t ]*(;|$)/i;
const form = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i;

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would replace invalid bytes with U+FFFD, and we would store that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Turns off Elysia's parsers, which read bodies of any size, and before a hook of the route can refuse the request.
 * A route reads its body with `readJson` or `readForm` in a `transform` hook, which also runs before validation.
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
    const value = parseJson(utf8.decode(bytes), bytes.length > largestBytes);
    if (!isRecord(value)) throw new InvalidInput("body", "The field body must be an object");
    return value;
  });

/**
 * Reads a form of one of our pages. A repeated field becomes a list, which no form accepts.
 *
 * Multipart forms are not read. Elysia would build objects from the field names and parse the texts, so that
 * `a[99999999]` from an unauthenticated client blocks the server for a minute.
 *
 * @throws SvcError, BodyTooLarge
 */
export const readForm = (request: Request): Promise<Record<string, string | string[]>> =>
  readable(async () => {
    const bytes = await bytesOf(request, largestBytes);
    if (!form.test(typeOf(request)))
      throw new InvalidInput("body", "Send the form as application/x-www-form-urlencoded");
    const fields = new URLSearchParams(utf8.decode(bytes));
    const valuesOf = (name: string) => {
      const [value = "", ...more] = fields.getAll(name);
      return more.length === 0 ? value : [value, ...more];
    };
    return Object.fromEntries([...new Set(fields.keys())].map((name) => [name, valuesOf(name)]));
  });

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

/**
 * With a reviver, JSON.parse fails beyond some thousand levels. That is intended: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 */
function parseJson(text: string, isLarge: boolean): unknown {
  if (isLarge) return flat(JSON.parse(text));
  return JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
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
