import { Elysia } from "elysia";
import { plainAddress } from "../../platform/address.ts";
import type { Deps, Listener } from "../deps.ts";

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

const usual: Readonly<Record<string, string>> = Object.fromEntries(usualHeaders);

/** Tells browsers what they are to know. */
export class SecurityHeaders {
  constructor(
    private readonly proxies: Deps["proxies"],
    private readonly listener: Listener,
  ) {}

  /** Gives them to each request's answer. */
  readonly hook = () =>
    new Elysia({ name: "security headers" }).onRequest(({ request, set }) => {
      set.headers = this.of(request);
    });

  /** What the answer to a request begins with; its route may put its own words in the place of these. */
  of(request: Request): Record<string, string> {
    return this.#byTls(request) ? { ...usual, "strict-transport-security": onlyByTls } : { ...usual };
  }

  /** Adds them to an answer that is there already, which costs several times as much. */
  add(answer: Response, request: Request): Response {
    const { headers } = answer;
    for (const [name, value] of usualHeaders) if (!headers.has(name)) headers.set(name, value);
    if (this.#byTls(request)) headers.set("strict-transport-security", onlyByTls);
    return answer;
  }

  /** By TLS to us, or to a proxy that we believe. The rightmost is what the nearest proxy says. */
  #byTls(request: Request): boolean {
    if (request.url.startsWith("https:")) return true;
    if (!this.proxies.enabled) return false;
    const told = request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase();
    const peer = plainAddress(this.listener.server?.requestIP(request)?.address ?? "");
    return told === "https" && peer !== undefined && this.proxies.trusts(peer);
  }
}
