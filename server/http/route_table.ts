import type { AnyElysia } from "elysia";
import { asksForToken } from "../auth/actor.ts";

/** One row of `svc server routes` (spec 2.3). */
export interface RouteRow {
  /** With `{name}` for what varies. */
  path: string;
  /** Whether it answers only to the holder of an access token. */
  authenticated: boolean;
  method: string;
}

/** What the application answers to, by path: its own routes, so that nothing has to be kept up to date. */
export function routeTable(app: Pick<AnyElysia, "routes">): RouteRow[] {
  const rows = app.routes.flatMap((route) =>
    spellings(route.path).map((path) => ({
      path,
      authenticated: asksForToken(route),
      method: route.method,
    })),
  );
  return rows.sort((a, b) => compare(a.path, b.path) || compare(a.method, b.method));
}

/** A colon within a name is the name's own, and some spell it `_`; behind a slash it begins what varies. */
function spellings(path: string): string[] {
  const withNames = path.replaceAll(/(?<=\/):(\w+)/g, "{$1}");
  return withNames.includes(":") ? [withNames.replaceAll(":", "_"), withNames] : [withNames];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
