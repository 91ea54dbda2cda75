import { Elysia } from "elysia";
import style from "./style.css" with { type: "text" };

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="11" fill="#1d4ed8"/></svg>`;
const headers = (type: string) => ({
  "content-type": type,
  "cache-control": "public, max-age=3600",
  "x-content-type-options": "nosniff",
});

/** The assets of the pages: a style sheet and an icon, nothing else. */
export const pageAssets = new Elysia({ name: "page assets" })
  .get("/style.css", () => new Response(style, { headers: headers("text/css; charset=utf-8") }))
  .get("/icon.svg", () => new Response(icon, { headers: headers("image/svg+xml") }));
