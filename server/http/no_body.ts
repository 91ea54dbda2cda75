import { OptionalKind } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { InvalidInput } from "../../platform/errors.ts";
import { isJson, noJson } from "./body.ts";
import type { Routes } from "./methods.ts";
import { closed } from "./schema.ts";
import { largestBytes, readBody } from "./size.ts";

/** A request, as a hook sees it. */
interface Posted {
  request: Request;
  route: string;
  body?: unknown;
}

/** The body of a request that says all in its path. */
export const nothing = t.Optional(t.Object({}, closed));

/**
 * For each request to one of `routes` whose body may be left out: there is none, or an object as JSON. Elysia checks no optional
 * body in which it finds nothing: `[]`, bytes, and whatever is of a content type that it does not know.
 */
class OptionalBodies {
  /** By their routes. */
  readonly #known: Set<string>;
  /** Those in which there was nothing, though they were said to have something. */
  readonly #empty = new WeakSet<Request>();

  constructor(routes: Routes) {
    const optional = routes.filter(({ method, hooks }) => method === "POST" && isOptional(hooks.body));
    this.#known = new Set(optional.map(({ path }) => path));
  }

  /**
   * A parser ahead of that of JSON: it reads whatever else there is, to see whether that is anything. Whose length was not
   * said may be of no chunks; to ask for that when the rest is checked, each request of any kind would have to wait.
   */
  read({ request, route }: Posted): Promise<unknown> | undefined {
    if (request.body === null || sendsJson(request) || !this.#has(request, route)) return undefined;
    return readBody(request, largestBytes).then(({ length }) => {
      if (length > 0) return noJson;
      this.#empty.add(request);
      // With undefined, Elysia would read it once more.
      return null;
    });
  }

  /** @throws InvalidInput */
  check({ request, route, body }: Posted): void {
    if (body === undefined || !this.#has(request, route) || this.#empty.has(request)) return;
    if (!sendsJson(request) || typeof body !== "object" || body === null || Array.isArray(body))
      throw new InvalidInput("body", "Send no body, or a JSON object as application/json");
  }

  #has({ method }: Request, route: string): boolean {
    return method === "POST" && this.#known.has(route);
  }
}

/** Before the parser of JSON. */
export function optionalBodies(routes: Routes) {
  const bodies = new OptionalBodies(routes);
  return new Elysia({ name: "optional bodies" })
    .onParse({ as: "global" }, ({ request, route }) => bodies.read({ request, route }))
    .onBeforeHandle({ as: "global" }, ({ request, route, body }) => {
      bodies.check({ request, route, body });
    });
}

const sendsJson = ({ headers }: Request) => isJson(headers.get("content-type") ?? "");

function isOptional(body: unknown): boolean {
  return typeof body === "object" && body !== null && OptionalKind in body;
}
