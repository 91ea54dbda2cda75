import { OptionalKind } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { InvalidInput } from "../../platform/errors.ts";
import { isJson, noJson } from "./body.ts";
import type { Routes } from "./methods.ts";
import { closed } from "./schema.ts";
import { largestBytes, readBody } from "./size.ts";

/** A request as hooks see it. */
interface Posted {
  request: Request;
  route: string;
  body?: unknown;
}

/** The body schema of a request whose path says everything. */
export const nothing = t.Optional(t.Object({}, closed));

/**
 * For requests to `routes` with an optional body: the body must be missing or a JSON object. Elysia does not check an
 * optional body that it finds empty: `[]`, bytes, or any unknown content type.
 */
class OptionalBodies {
  /** Route templates. */
  readonly #known: Set<string>;
  /** Requests with an empty body despite a header that announced one. */
  readonly #empty = new WeakSet<Request>();

  constructor(routes: Routes) {
    const optional = routes.filter(({ method, hooks }) => method === "POST" && isOptional(hooks.body));
    this.#known = new Set(optional.map(({ path }) => path));
  }

  /**
   * A parser that runs before the JSON parser and reads all other bodies to see whether they are empty. A chunked body
   * may have no chunks; checking that later, with the rest, would make every request of any kind wait.
   */
  read({ request, route }: Posted): Promise<unknown> | undefined {
    if (request.body === null || sendsJson(request) || !this.#has(request, route)) return undefined;
    return readBody(request, largestBytes).then(({ length }) => {
      if (length > 0) return noJson;
      this.#empty.add(request);
      // With undefined, Elysia would read the body again.
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

/** Must be registered before the JSON parser. */
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
