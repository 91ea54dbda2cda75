import { Elysia } from "elysia";
import { plainAddress } from "../../platform/address.ts";
import type { BoundServer, Deps } from "../deps.ts";
import { tlsClientOf } from "./tls_client.ts";

/** The headers of every answer that sets no others: it is data, not cached, and for the requesting site only. */
export const usualHeaders: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const usualEntries = Object.entries(usualHeaders);

/** One year of HTTPS only (RFC 6797). */
const onlyByTls = "max-age=31536000";

/** Adds security headers to answers. */
export class SecurityHeaders {
  constructor(
    private readonly proxies: Deps["proxies"],
    private readonly bound: BoundServer,
  ) {}

  /** An Elysia hook that adds the headers to each answer. */
  hook() {
    return new Elysia({ name: "security headers" }).onRequest(({ request, set }) => {
      set.headers = this.of(request);
    });
  }

  /** The initial headers of an answer; its route may override them. */
  of(request: Request): Record<string, string> {
    return this.#byTls(request)
      ? { ...usualHeaders, "strict-transport-security": onlyByTls }
      : { ...usualHeaders };
  }

  /** Adds the headers to a finished answer, which costs several times as much. */
  add(answer: Response, request: Request): Response {
    const { headers } = answer;
    for (const [name, value] of usualEntries) if (!headers.has(name)) headers.set(name, value);
    return this.addHsts(answer, request);
  }

  /** Completes an answer that was made with `usualHeaders`. */
  addHsts(answer: Response, request: Request): Response {
    if (this.#byTls(request)) answer.headers.set("strict-transport-security", onlyByTls);
    return answer;
  }

  /** Whether the request came over TLS, to us or to a trusted proxy. The rightmost value is the nearest proxy's. */
  #byTls(request: Request): boolean {
    if (request.url.startsWith("https:") || tlsClientOf(request)) return true;
    if (!this.proxies.enabled) return false;
    const told = request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase();
    const peer = plainAddress(this.bound.server?.requestIP(request)?.address ?? "");
    return told === "https" && peer !== undefined && this.proxies.trusts(peer);
  }
}
