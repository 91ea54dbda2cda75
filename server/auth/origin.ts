import { isLoopbackHost } from "../../core/address.ts";
import type { Config } from "../../core/config.ts";
import { Forbidden } from "../../core/errors.ts";

/**
 * Refuses a form that another site sent. Our pages have `no-referrer`, for which browsers send `Origin: null` with
 * their forms; then Sec-Fetch-Site, which no page can set, has to say that it was ours.
 *
 * @throws Forbidden
 */
export function requireOwnOrigin(config: Config, request: Request): void {
  const origin = request.headers.get("origin");
  const site = request.headers.get("sec-fetch-site");
  if (origin === new URL(config.publicUrl).origin && (site === null || site === "same-origin")) return;
  if ((origin === null || origin === "null") && site === "same-origin") return;
  // Over http that is not loopback, browsers say nothing at all; there the CSRF token alone must do.
  if ((origin === null || origin === "null") && site === null && !isTrustworthy(config.publicUrl)) return;
  throw new Forbidden("This form was not sent from a page of this server");
}

/** Where browsers send Sec-Fetch-Site (Secure Contexts, 3.1). */
function isTrustworthy(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || isLoopbackHost(hostname);
}
