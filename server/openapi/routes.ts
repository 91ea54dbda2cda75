import { type AnyElysia, Elysia } from "elysia";
import { openApiPage } from "./page.tsx";

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
  const build = async () => {
    const { openApiDocument } = await import("./document.ts");
    const document = openApiDocument(api, publicUrl);
    return { document, json: JSON.stringify(document) };
  };
  // Loaded and built on the first request, because both take long.
  let known: ReturnType<typeof build> | undefined;
  const get = () => {
    known ??= build();
    return known;
  };
  const json = async () => new Response((await get()).json, { headers });
  return new Elysia({ name: "openapi" })
    .get(
      "/openapi",
      async ({ request }) => {
        const person = request.headers.get("accept")?.includes("text/html");
        return person ? openApiPage((await get()).document) : json();
      },
      { detail: { hide: true } },
    )
    .get("/openapi/json", json, { detail: { hide: true } });
};
