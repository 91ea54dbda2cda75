import { OptionalKind } from "@sinclair/typebox";
import { type AnyElysia, t } from "elysia";
import { InvalidInput } from "../core/errors.ts";
import { closed } from "./schema.ts";

/** The body of a request that says all in its path. */
export const nothing = t.Optional(t.Object({}, closed));

/**
 * For each request of `app` whose body may be left out: there is none, or an object as JSON. Elysia checks no optional
 * body in which it finds nothing: `[]`, bytes, and whatever is of a content type that it does not know.
 */
export function refuseBody(app: () => AnyElysia) {
  let without: Set<string> | undefined;
  return ({ request, route, body }: { request: Request; route: string; body?: unknown }): void => {
    if (request.method !== "POST") return;
    without ??= new Set(
      app()
        .routes.filter(({ hooks }) => isOptional(hooks.body))
        .map(({ path }) => path),
    );
    if (!without.has(route) || request.body === null) return;
    const isJson = /^application\/json *(;|$)/.test(request.headers.get("content-type") ?? "");
    if (!isJson || typeof body !== "object" || body === null || Array.isArray(body))
      throw new InvalidInput("body", "The body of this request is none, or an object as application/json");
  };
}

function isOptional(body: unknown): boolean {
  return typeof body === "object" && body !== null && OptionalKind in body;
}
