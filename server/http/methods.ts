import type { AnyElysia } from "elysia";

/** The routes of an application, for hooks. */
export type Routes = AnyElysia["routes"];

/** The path exists, but answers the methods of `allowed` only. This is a concern of HTTP only. */
export class WrongMethod extends Error {
  constructor(readonly allowed: string) {
    super("This address does not support that method");
  }
}

/**
 * Resolves a failed request: if routes of the path take other methods only, the answer says so (RFC 9110, 9.3.7 and
 * 15.5.6). An error of the matched `route` is kept, because that route takes the method.
 *
 * @returns the answer to OPTIONS, or the resolved error
 */
export function resolveMethodError(all: Routes) {
  // Ignore catch-all routes: one for every method only answers 404, and one for every path handles methods itself.
  const routes = all
    .filter((route) => route.method !== "ALL" && !route.path.endsWith("*"))
    .map(({ method, path }) => ({ method, path, pattern: patternOf(path) }));
  const own = new Set(routes.map((known) => known.path));
  return (error: unknown, { method }: Request, path: string, route: string | undefined): unknown => {
    const literal = routes.filter((known) => known.path === path.replace(/(?<=.)\/$/, ""));
    // `DELETE /incidents/stream` must not be taken for that of an incident with the name `stream`.
    const matching = literal.length > 0 ? literal : routes.filter(({ pattern }) => pattern.test(path));
    if (route !== undefined && own.has(route) && !(literal.length > 0 && route.includes(":"))) return error;
    const methods = new Set(matching.map((route) => route.method));
    if (methods.has("GET") && !changesByGet.test(path)) methods.add("HEAD");
    if (methods.size === 0 || methods.has(method)) return error;
    const allowed = [...methods, "OPTIONS"].sort().join(", ");
    return method === "OPTIONS"
      ? new Response(null, { status: 204, headers: { allow: allowed } })
      : new WrongMethod(allowed);
  };
}

/** Where a GET has side effects, so that there is no HEAD: polls and sign-in pages. */
const changesByGet = /^\/(noauth|approve|sign_in|challenge(_|:|%3a)validator)\/|^\/app\/sign_in\/?$/i;

/** A colon inside a segment is literal, and some clients send `_` for it. Only the router takes it for a parameter. */
function patternOf(path: string): RegExp {
  const literal = (text: string) => text.split(":").map(RegExp.escape).join("(_|:|%3[Aa])");
  const pieces = path.replace(/\/$/, "").split(/(?<=\/):\w+/);
  return new RegExp(`^${pieces.map(literal).join("[^/]+")}/?$`);
}
