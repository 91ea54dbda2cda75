import type { AnyElysia } from "elysia";

/** The routes of an application, as hooks look them up. */
export type Routes = AnyElysia["routes"];

/** The address is there, and answers the methods of `allowed` only: nothing that anybody but HTTP knows of. */
export class WrongMethod extends Error {
  constructor(readonly allowed: string) {
    super("This address does not answer that method");
  }
}

/**
 * Resolves a failed request: where a route of the path takes other methods only, that is said (RFC 9110, 9.3.7 and
 * 15.5.6). What the `route` says that has matched, since it answers the method, remains.
 *
 * @returns the answer to OPTIONS, or the error that it really is
 */
export function resolveMethodError(all: Routes) {
  // What takes every method only says that there is nothing, and what takes every path knows for itself.
  const routes = all
    .filter((route) => route.method !== "ALL" && !route.path.endsWith("*"))
    .map(({ method, path }) => ({ method, path, pattern: patternOf(path) }));
  const own = new Set(routes.map((known) => known.path));
  return (error: unknown, { method }: Request, path: string, route: string | undefined): unknown => {
    if (route !== undefined && own.has(route)) return error;
    const methods = new Set(routes.filter(({ pattern }) => pattern.test(path)).map((route) => route.method));
    if (methods.has("GET") && !changesByGet.test(path)) methods.add("HEAD");
    if (methods.size === 0 || methods.has(method)) return error;
    const allowed = [...methods, "OPTIONS"].sort().join(", ");
    return method === "OPTIONS"
      ? new Response(null, { status: 204, headers: { allow: allowed } })
      : new WrongMethod(allowed);
  };
}

/** Where a GET does something, so that there is no HEAD: polls, and the pages of sign-in. */
const changesByGet = /^\/(noauth|approve|sign_in|challenge(_|:|%3a)validator)\//i;

/** A colon within a name is the name's own, and some spell it `_`: only for the router is it a parameter. */
function patternOf(path: string): RegExp {
  const literal = (text: string) => text.split(":").map(RegExp.escape).join("(_|:|%3[Aa])");
  const pieces = path.replace(/\/$/, "").split(/(?<=\/):\w+/);
  return new RegExp(`^${pieces.map(literal).join("[^/]+")}/?$`);
}
