import type { Server } from "bun";
import { plainAddress } from "../core/address.ts";
import type { Deps } from "./deps.ts";

/** What a browser is told of every answer that does not say otherwise itself: it is data, for whoever asked, and not kept. */
export const usualHeaders: readonly (readonly [string, string])[] = Object.entries({
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
});

/** A year: browsers then ask by TLS alone (RFC 6797). */
const onlyByTls = "max-age=31536000";

/** Adds what a browser is to know to an answer. */
export function secureAnswers({ proxies }: Pick<Deps, "proxies">) {
  /** By TLS to us, or to a proxy that we believe. The rightmost is what the nearest proxy says. */
  const byTls = (request: Request, server: Server<unknown> | null): boolean => {
    if (request.url.startsWith("https:")) return true;
    if (!proxies.enabled) return false;
    const told = request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase();
    const peer = plainAddress(server?.requestIP(request)?.address ?? "");
    return told === "https" && peer !== undefined && proxies.trusts(peer);
  };
  return (response: Response, request: Request, server: Server<unknown> | null): Response => {
    const { headers } = response;
    for (const [name, value] of usualHeaders) if (!headers.has(name)) headers.set(name, value);
    if (byTls(request, server)) headers.set("strict-transport-security", onlyByTls);
    return response;
  };
}
