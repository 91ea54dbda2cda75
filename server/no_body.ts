import { OptionalKind } from "@sinclair/typebox";
import { type AnyElysia, t } from "elysia";
import { InvalidInput } from "../core/errors.ts";
import { isJson } from "./json.ts";
import { closed } from "./schema.ts";

/** A request, as a hook sees it. */
interface Posted {
  request: Request;
  route: string;
  body?: unknown;
}

/** The body of a request that says all in its path. */
export const nothing = t.Optional(t.Object({}, closed));

/**
 * For each request of `app` whose body may be left out: there is none, or an object as JSON. Elysia checks no optional
 * body in which it finds nothing: `[]`, bytes, and whatever is of a content type that it does not know.
 */
export function refuseBody(app: () => AnyElysia) {
  let without: Set<string> | undefined;
  return async ({ request, route, body }: Posted): Promise<void> => {
    if (request.method !== "POST") return;
    without ??= new Set(
      app()
        .routes.filter(({ hooks }) => isOptional(hooks.body))
        .map(({ path }) => path),
    );
    if (!without.has(route) || (await isEmpty(request, body))) return;
    const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
    if (!isObject || !isJson(request.headers.get("content-type") ?? ""))
      throw new InvalidInput("body", "The body of this request is none, or an object as application/json");
  };
}

/** Also of one whose length was not said, and that is of no chunks then: whoever reads it first finds nothing in it. */
async function isEmpty(request: Request, body: unknown): Promise<boolean> {
  if (request.body === null) return true;
  if (!request.bodyUsed) return (await request.bytes()).length === 0;
  const type = request.headers.get("content-type") ?? "";
  if (isJson(type)) return body === undefined;
  if (body instanceof ArrayBuffer) return body.byteLength === 0;
  return body === "" || (isForm(type) && Object.keys(body ?? {}).length === 0);
}

function isForm(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded[\t ]*(;|$)/i.test(contentType);
}

function isOptional(body: unknown): boolean {
  return typeof body === "object" && body !== null && OptionalKind in body;
}
