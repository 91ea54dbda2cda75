import { Elysia } from "elysia";
import { InvalidInput } from "../../platform/errors.ts";
import { asksForToken } from "../auth/actor.ts";
import { unknownName } from "./error.ts";
import type { Routes } from "./methods.ts";

/**
 * For requests to `routes`: unknown query parameters are refused, as they are everywhere else. Otherwise a `version` in
 * the URL of a DELETE would be ignored silently. Elysia accepts them where a route has no query schema, and a guard's
 * schema would replace those of the other routes. Repeated parameters are refused, too, because only one of them would
 * count.
 *
 * Public routes accept anything, since others append parameters of their own.
 */
export function refuseUnknownQuery(routes: Routes) {
  /** Whether a route has parameters, for those that ask for a token. */
  const hasQuery = new Map(
    routes
      .filter(asksForToken)
      .map(({ method, path, hooks }) => [`${method} ${path}`, hooks.query !== undefined]),
  );
  const check = ({ request, route }: { request: Request; route: string }): void => {
    const { url, method } = request;
    if (!url.includes("?")) return;
    const known = hasQuery.get(`${method === "HEAD" ? "GET" : method} ${route}`);
    if (known === undefined) return;
    const { searchParams } = new URL(url);
    const [first] = searchParams.keys();
    if (first !== undefined && !known) throw unknownName("query", first);
    refuseRepeated(searchParams);
  };
  return new Elysia({ name: "unknown query" }).onBeforeHandle({ as: "global" }, check);
}

/**
 * For known names only: the schema has refused all others.
 * @throws InvalidInput
 */
function refuseRepeated(query: URLSearchParams): void {
  const names = new Set<string>();
  for (const name of query.keys()) {
    if (names.has(name)) throw new InvalidInput(name, `The parameter ${name} is given twice`);
    names.add(name);
  }
}
