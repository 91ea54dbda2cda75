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
 * `/openapi`: what the API is, for programs and (when a browser asks) for people; `/openapi/json` whoever asks. Open to
 * everyone, since it holds what the source holds and nothing of this installation but its address. Its own routes are in no
 * document.
 */
export const openApiRoutes = (publicUrl: string, api: AnyElysia) => {
  let known: { document: OpenApiDocument; json: string } | undefined;
  // With the first question: it takes long.
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
