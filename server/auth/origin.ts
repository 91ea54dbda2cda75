import { isIP } from "node:net";
import type { Config } from "../../core/config.ts";
import { isLoopbackHost } from "../../platform/address.ts";
import { Forbidden } from "../../platform/errors.ts";

/**
 * Refuses a form that another site sent. Our pages use `no-referrer`, with which browsers send `Origin: null`; then
 * Sec-Fetch-Site, which no page can set, must say that the form is ours.
 *
 * @throws Forbidden
 */
export function requireOwnOrigin(config: Config, request: Request): void {
  const origin = request.headers.get("origin");
  const site = request.headers.get("sec-fetch-site");
  if (origin === new URL(config.publicUrl).origin && (site === null || site === "same-origin")) return;
  if ((origin === null || origin === "null") && site === "same-origin") return;
  // Over http on a host that is not loopback, browsers send neither header; there the CSRF token alone must suffice.
  if ((origin === null || origin === "null") && site === null && !isTrustworthy(config.publicUrl)) return;
  throw new Forbidden("This form was not sent from a page of this server");
}

/**
 * Refuses a form that a script sent: somebody must have pressed the button. Browsers say so since 2023 (Fetch Metadata), at
 * least where they send Sec-Fetch-Site.
 *
 * @throws Forbidden
 */
export function requireClick({ headers }: Request): void {
  if (headers.get("sec-fetch-site") === null) return;
  if (headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-user") === "?1") return;
  throw new Forbidden("Nobody pressed the button: open the page again, and press it");
}

const lookAhead = /prefetch|prerender|preview/i;

/** Whether a browser prefetches, or a program previews the link: nobody has followed it yet. */
export function isLookAhead({ headers }: Request): boolean {
  return ["sec-purpose", "purpose", "x-purpose", "x-moz"].some((name) =>
    lookAhead.test(headers.get(name) ?? ""),
  );
}

/** Where browsers send Sec-Fetch-Site (Secure Contexts, 3.1). */
function isTrustworthy(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || isLoopbackHost(hostname);
}

/**
 * Refuses requests that another site triggers: a change with the browser's cookie, or a request of the challenge
 * protocol. Clients of that protocol are never pages; a page could not read the answer, but could use up the rate
 * limits of the browser's address.
 *
 * @throws Forbidden
 */
export function refuseOtherSites({ publicUrl }: Config, { headers }: Request): void {
  const site = headers.get("sec-fetch-site");
  const from = headers.get("origin") ?? headers.get("referer");
  const marked = site !== null && site !== "same-origin" && site !== "none";
  if (marked || (from !== null && URL.parse(from)?.origin !== new URL(publicUrl).origin)) {
    throw new Forbidden("This request was sent by a page of another site");
  }
}

/** Names that cannot be registered on the internet: of one machine, network or cluster. */
const privateName = /(^[^.]+|\.(localhost|local|internal|home\.arpa))$/;

/**
 * Refuses a Host that is neither that of SVC_PUBLIC_URL, nor an IP address, nor a private name such as `server:8000`. A
 * page whose own name resolves to this server (DNS rebinding) has the same origin for its browser, and could read the
 * answers.
 *
 * @throws Forbidden
 */
export function requireOwnHost({ publicUrl }: Config, request: Request): void {
  const host = request.headers.get("host") ?? "";
  const own = new URL(publicUrl);
  const url = URL.parse(`${own.protocol}//${host}`);
  const hostname = url?.hostname.replace(/\.$/, "") ?? "";
  if (hostname === own.hostname || privateName.test(hostname) || isAddress(hostname)) return;
  throw new Forbidden(`This server is ${publicUrl}, but the request names another host`);
}

function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
}
