import { Elysia } from "elysia";
import { longestContent } from "../../core/incident/document/content.ts";

/** Names that JavaScript gives a meaning: Elysia turns a value that it refuses into text, by its own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/** What stands for a body that is no JSON: no object, whatever is in it. */
export const noJson = "no JSON";

/** Whether a media type, with its parameters or without, is JSON (RFC 9110, 8.3.1). */
export function isJson(contentType: string): boolean {
  return /^application\/json[\t ]*(;|$)/i.test(contentType);
}

/** Of any body but that of a text. */
const largestBytes = 1024 * 1024;
/** A text of the longest, all of it written as `\u0041`; and what stands around it. */
export const largestTextBytes = longestContent * 6 + 64 * 1024;
export const textRoute = "/documents/:document_id/content";

/** Larger than the route takes. Bun itself refuses what is larger than any. */
export class BodyTooLarge extends Error {
  constructor() {
    super("The body is larger than 1 MiB");
  }
}

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would put U+FFFD for what is none, and we would keep that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The body of a request with a JSON content type; undefined for any other, which Elysia reads itself. What it throws,
 * Elysia makes a PARSE error of.
 *
 * A form in parts is not read. Elysia would build objects of the names and parse the texts, so that `a[99999999]` of somebody who has not signed in holds up the server for a minute.
 *
 * With a reviver, JSON.parse gives up after some thousand levels. That is wanted: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 */
async function readJson(request: Request, contentType: string, route: string): Promise<unknown> {
  if (/^multipart\//i.test(contentType)) {
    // Bun keeps the connection of a body that nobody has read until the grace time is over.
    await request.bytes();
    return noJson;
  }
  if (!isJson(contentType)) return undefined;
  const bytes = await request.bytes();
  const isLarge = bytes.length > largestBytes;
  if (isLarge && route !== textRoute) throw new BodyTooLarge();
  const text = utf8.decode(bytes);
  if (isLarge) return flat(JSON.parse(text));
  // None after all, of no chunks: Elysia finds that it is missing, where one is asked for.
  if (text === "") return undefined;
  return JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
}

/** Reads every body of JSON. */
export const jsonBodies = new Elysia({ name: "json bodies" }).onParse(
  { as: "global" },
  ({ request, contentType, route }) => readJson(request, contentType, route),
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
