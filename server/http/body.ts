import { Elysia } from "elysia";
import { largestBytes, largestTextBytes, readBody, textRoute } from "./size.ts";

/** Names that JavaScript gives a meaning: Elysia turns a value that it refuses into text, by its own `toString`. */
const methods = new Set(["__proto__", "toString", "valuesOf"]);

/** What stands for a body that is no JSON: no object, whatever is in it. */
export const noJson = "no JSON";

/** Whether a media type, with its parameters or without, is JSON (RFC 9110, 8.3.1). */
export function isJson(contentType: string): boolean {
  return /^application\/json[\t ]*(;|$)/i.test(contentType);
}

const isForm = (contentType: string) => /^application\/x-www-form-urlencoded[\t ]*(;|$)/i.test(contentType);

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would put U+FFFD for what is none, and we would keep that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a body: JSON, a form, or `noJson` for anything else. What it throws, Elysia makes a PARSE error of. Elysia parses
 * no body itself, because it reads one of any size.
 *
 * A form in parts is not read. Elysia would build objects of the names and parse the texts, so that `a[99999999]` of
 * somebody who has not signed in holds up the server for a minute.
 *
 * With a reviver, JSON.parse gives up after some thousand levels. That is wanted: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 */
async function parseBody(request: Request, contentType: string, route: string): Promise<unknown> {
  if (request.body === null) return undefined;
  if (!isJson(contentType)) {
    const bytes = await readBody(request, largestBytes);
    // With undefined, Elysia would read it once more.
    if (bytes.length === 0) return "";
    return isForm(contentType) ? fieldsOf(utf8.decode(bytes)) : noJson;
  }
  const bytes = await readBody(request, route === textRoute ? largestTextBytes : largestBytes);
  const text = utf8.decode(bytes);
  if (bytes.length > largestBytes) return flat(JSON.parse(text));
  // None after all, of no chunks: Elysia finds that it is missing, where one is asked for.
  if (text === "") return undefined;
  return JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
}

/** A field that is there twice is a list, which none of our forms takes. */
function fieldsOf(text: string): Record<string, string | string[]> {
  const fields = new URLSearchParams(text);
  const valuesOf = (name: string) => {
    const [value = "", ...more] = fields.getAll(name);
    return more.length === 0 ? value : [value, ...more];
  };
  return Object.fromEntries([...new Set(fields.keys())].map((name) => [name, valuesOf(name)]));
}

/** Reads every body. */
export const bodies = new Elysia({ name: "bodies" }).onParse(
  { as: "global" },
  ({ request, contentType, route }) => parseBody(request, contentType, route),
);

/** An object of a few texts: to look into a large one takes long, and strangers send some, too. */
function flat(value: unknown): unknown {
  const isFlat =
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length <= 8;
  if (!isFlat || Object.values(value).some((one) => typeof one === "object" && one !== null))
    throw new SyntaxError("not an object of a few texts");
  if (Object.keys(value).some((name) => methods.has(name)))
    throw new SyntaxError("a field is named like a method");
  return value;
}

/** The body is of another media type than a route of the API takes: nothing that anybody but HTTP knows of. */
export class WrongMediaType extends Error {
  constructor() {
    super("Send the body as application/json, and say so in Content-Type");
  }
}

/**
 * Elysia makes an object of a form as well, of which some routes would take what they know (`curl -d` sends one), and
 * nothing of what it does not know, which would then seem to be missing. A DELETE has no use for any body.
 *
 * @throws WrongMediaType
 */
export function refuseOtherMedia({ method, headers }: Request, body: unknown): void {
  if (method === "GET" || method === "HEAD" || method === "DELETE") return;
  if (isJson(headers.get("content-type") ?? "")) return;
  const isThere = body === undefined ? hasContent(headers) : body !== null && body !== "";
  if (isThere) throw new WrongMediaType();
}

function hasContent(headers: Headers): boolean {
  return headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
}
