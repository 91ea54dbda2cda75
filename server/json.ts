/** Names that JavaScript gives a meaning: Elysia turns a value that it refuses into text, by its own `toString`. */
const methods = new Set(["__proto__", "toString", "valueOf"]);

/** Whether a media type, with its parameters or without, is JSON (RFC 9110, 8.3.1). */
export function isJson(contentType: string): boolean {
  return /^application\/json[\t ]*(;|$)/i.test(contentType);
}

/**
 * The body of a request with a JSON content type; undefined for any other, which Elysia reads itself. What it throws,
 * Elysia makes a PARSE error of.
 *
 * With a reviver, JSON.parse gives up after some thousand levels. That is wanted: Elysia's validator takes seconds for
 * 100,000 levels in 200 KB.
 */
export async function readJson(request: Request, contentType: string): Promise<unknown> {
  if (!isJson(contentType)) return undefined;
  const text = await request.text();
  // None after all, of no chunks: Elysia finds that it is missing, where one is asked for.
  if (text === "") return undefined;
  return JSON.parse(text, (name, value) => {
    if (methods.has(name)) throw new SyntaxError("a field is named like a method");
    return value;
  });
}
