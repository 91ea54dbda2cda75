import { Elysia } from "elysia";
import { InvalidInput } from "../../platform/errors.ts";
import { asksForToken } from "../auth/actor.ts";
import { unknownName } from "./error.ts";
import type { Routes } from "./methods.ts";

/**
 * For each request to one of `routes`: what a route says nothing of is refused in its query, as it is everywhere else. A `version`
 * after the address of a DELETE would be hoped for in vain. Elysia lets it pass where there is no schema, and the schema of
 * a guard would replace those of the routes that have one. So is what is said twice: only one of the two would count.
 *
 * What is open to everyone takes anything: others append words of their own.
 */
export function refuseUnknownQuery(routes: Routes) {
  const asking = new Map(
    routes
      .filter(asksForToken)
      .map(({ method, path, hooks }) => [`${method} ${path}`, { knows: hooks.query !== undefined }]),
  );
  const check = ({ request, route }: { request: Request; route: string }): void => {
    const { url, method } = request;
    if (!url.includes("?")) return;
    const asked = asking.get(`${method === "HEAD" ? "GET" : method} ${route}`);
    if (asked && !asked.knows) {
      const [first] = new URL(url).searchParams.keys();
      throw unknownName("query", first);
    }
    if (asked) refuseRepeated(new URL(url).searchParams);
  };
  return new Elysia({ name: "unknown query" }).onBeforeHandle({ as: "global" }, check);
}

/** Of names that are known: the schema has refused all others. @throws InvalidInput */
function refuseRepeated(query: URLSearchParams): void {
  const names = new Set<string>();
  for (const name of query.keys()) {
    if (names.has(name)) throw new InvalidInput(name, `The parameter ${name} is given twice`);
    names.add(name);
  }
}
