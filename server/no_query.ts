import type { AnyElysia } from "elysia";
import { asksForToken } from "./auth/actor.ts";
import { unknownName } from "./error.ts";

/**
 * For each request of `app`: what a route says nothing of is refused in its query, as it is everywhere else. A `version`
 * after the address of a DELETE would be hoped for in vain. Elysia lets it pass where there is no schema, and the schema of
 * a guard would replace those of the routes that have one.
 *
 * What is open to everyone takes anything: others append words of their own.
 */
export function refuseUnknownQuery(app: () => AnyElysia) {
  let without: Set<string> | undefined;
  return ({ request, route }: { request: Request; route: string }): void => {
    if (!request.url.includes("?")) return;
    without ??= new Set(
      app()
        .routes.filter((one) => asksForToken(one) && one.hooks.query === undefined)
        .map(({ method, path }) => `${method} ${path}`),
    );
    if (without.has(`${request.method} ${route}`)) throw unknownName();
  };
}
