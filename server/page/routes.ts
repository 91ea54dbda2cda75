import { Elysia } from "elysia";

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="11" fill="#1d4ed8"/></svg>`;
const headers = {
  "content-type": "image/svg+xml",
  "cache-control": "public, max-age=3600",
  "x-content-type-options": "nosniff",
};

/** The icon of all pages, at an address that is the same in every release. */
export const pageAssets = new Elysia({ name: "page assets" }).get(
  "/icon.svg",
  () => new Response(icon, { headers }),
);
