import { type AnyElysia, Elysia } from "elysia";
import { openApiDocument } from "./document.ts";
import { openApiPage } from "./page.ts";
import type { OpenApiDocument } from "./types.ts";

const headers = {
  "content-type": "application/json",
  "cache-control": "no-cache",
  "x-content-type-options": "nosniff",
};

/**
 * `/openapi` describes the API: as JSON for programs, and as a page when a browser asks; `/openapi/json` is always
 * JSON. Both are public, since they contain nothing about this installation but its address. They are not part of the
 * document.
 */
export const openApiRoutes = (publicUrl: string, api: AnyElysia) => {
  let known: { document: OpenApiDocument; json: string } | undefined;
  // Built on the first request, because it takes long.
  const get = () => {
    if (!known) {
      const document = openApiDocument(api, publicUrl);
      known = { document, json: JSON.stringify(document) };
    }
    return known;
  };
  const json = () => new Response(get().json, { headers });
  return new Elysia({ name: "openapi" })
    .get(
      "/openapi",
      ({ request }) => {
        const person = request.headers.get("accept")?.includes("text/html");
        return person ? openApiPage(get().document) : json();
      },
      { detail: { hide: true } },
    )
    .get("/openapi/json", json, { detail: { hide: true } });
};
