import { InvalidInput } from "../core/errors.ts";

/** Names that JavaScript gives a meaning: Elysia turns a value that it refuses into text, by its own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/** Whether a media type, with its parameters or without, is JSON (RFC 9110, 8.3.1). */
export function isJson(contentType: string): boolean {
  return /^application\/json[\t ]*(;|$)/i.test(contentType);
}

/** JSON is UTF-8 (RFC 8259, 8.1). `Request.text` would put U+FFFD for what is none, and we would keep that. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The body of a request with a JSON content type; undefined for any other, which Elysia reads itself. What it throws,
 * Elysia makes a PARSE error of.
 *
 * Null for a form in parts, which is refused as that wherever a body is asked for. Elysia would build objects of the names
 * and parse the texts, so that `a[99999999]` of somebody who has not signed in holds up the server for a minute.
 *
 * With a reviver, JSON.parse gives up after some thousand levels. That is wanted: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 */
export async function readJson(request: Request, contentType: string): Promise<unknown> {
  if (/^multipart\//i.test(contentType)) {
    await request.bytes();
    return null;
  }
  if (!isJson(contentType)) return undefined;
  const text = utf8.decode(await request.bytes());
  // None after all, of no chunks: Elysia finds that it is missing, where one is asked for.
  if (text === "") return undefined;
  return JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
}

/**
 * Elysia makes an object of a form as well, of which some routes would take what they know: `curl -d` sends one. A DELETE
 * has no use for any body.
 *
 * @throws InvalidInput
 */
export function refuseForm(request: Request, body: unknown): void {
  if (request.method === "DELETE") return;
  const says = typeof body === "object" && body !== null && Object.keys(body).length > 0;
  if (says && !isJson(request.headers.get("content-type") ?? ""))
    throw new InvalidInput("body", "The body of this request is an object as application/json");
}
