import { OptionalKind } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { InvalidInput } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { isJson } from "./body.ts";
import type { Routes } from "./methods.ts";
import { closed } from "./schema.ts";

/** The body schema of a request whose path says everything. */
export const nothing = t.Optional(t.Object({}, closed));

/**
 * For requests to `routes` with an optional body: the body must be missing or a JSON object. Elysia does not check an
 * optional body that it finds empty: `[]`, bytes, or any unknown content type.
 */
export function optionalBodies(routes: Routes) {
  const optional = routes.filter(({ method, hooks }) => method === "POST" && isOptional(hooks.body));
  const known = new Set(optional.map(({ path }) => path));
  return new Elysia({ name: "optional bodies" }).onBeforeHandle(
    { as: "global" },
    ({ request, route, body }) => {
      if (body === undefined || request.method !== "POST" || !known.has(route)) return;
      const sendsJson = isJson(request.headers.get("content-type") ?? "");
      // Empty, despite a header that announced one.
      if (body === null && !sendsJson) return;
      if (!sendsJson || !isRecord(body))
        throw new InvalidInput("body", "Send no body, or a JSON object as application/json");
    },
  );
}

function isOptional(body: unknown): boolean {
  return typeof body === "object" && body !== null && OptionalKind in body;
}
