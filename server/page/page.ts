import { type Html, html } from "./html.ts";

/** Headers of every page: not cached, leaked to other sites, framed, or executed. */
export const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** A whole page with one heading and one card. `tone` is the colour of the mark above the heading. */
export function page(options: {
  title: string;
  body: Html;
  status?: number;
  tone?: "good" | "bad" | "neutral";
  headers?: Record<string, string>;
}): Response {
  const { title, body, status = 200, tone = "neutral", headers } = options;
  const document = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · svc</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        <main class="card ${tone}">
          <p class="brand"><span class="mark" aria-hidden="true"></span>svc</p>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html> `;
  return new Response(document.text, { status, headers: { ...pageHeaders, ...headers } });
}

/** Redirects the browser to a path of ours or to the issuer. */
export function redirect(location: string, headers: Record<string, string> = {}): Response {
  const { "content-type": _, ...rest } = pageHeaders;
  return new Response(null, { status: 303, headers: { ...rest, location, ...headers } });
}
