import type { AnyElysia } from "elysia";
import { asksForToken } from "../auth/actor.ts";
import { challengeRoute } from "../challenge/routes.ts";

/** One row of `svc server routes`. */
export interface RouteRow {
  /** With `{name}` for parameters. */
  path: string;
  /** Whether it requires an access token. */
  authenticated: boolean;
  method: string;
}

/** What the route of the challenge protocol answers: Elysia's router cannot tell a literal colon from a parameter. */
const challengePaths = [
  "/noauth/v1/challenge:generator/:userName",
  "/noauth/v1/challenge:poller/:challengeToken",
];

/**
 * Lists the application's routes by path, read from the application itself so that the list is always current. Omits
 * routes for every method: they only answer 404.
 */
export function routeTable(app: Pick<AnyElysia, "routes">): RouteRow[] {
  const rows = app.routes
    .filter(({ method }) => method !== "ALL")
    .flatMap((route) =>
      (route.path === challengeRoute ? challengePaths : [route.path]).flatMap(spellings).map((path) => ({
        path,
        authenticated: asksForToken(route),
        method: route.method,
      })),
    );
  return rows.sort((a, b) => compare(a.path, b.path) || compare(a.method, b.method));
}

/**
 * Returns the spellings of a path. A colon inside a segment is literal, and some clients send `_` for it; after a slash
 * it starts a parameter.
 */
function spellings(path: string): string[] {
  const withNames = path.replaceAll(/(?<=\/):(\w+)/g, "{$1}");
  return withNames.includes(":") ? [withNames.replaceAll(":", "_"), withNames] : [withNames];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
