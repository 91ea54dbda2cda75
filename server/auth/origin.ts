import { isIP } from "node:net";
import type { Config } from "../../core/config.ts";
import { isLoopbackHost } from "../../platform/address.ts";
import { Forbidden, InvalidInput } from "../../platform/errors.ts";

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

/**
 * Refuses a form in any other shape than a browser sends ours in.
 * @throws InvalidInput
 */
export function requireForm(request: Request): void {
  const type = request.headers.get("content-type") ?? "";
  if (!/^\s*application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new InvalidInput("body", "Send the form as application/x-www-form-urlencoded");
}

const lookAhead = /prefetch|prerender|preview/i;

/** Whether a browser, or a program that shows links, only looks ahead: nobody has followed the link yet. */
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
 * Refuses what a page of another site has a browser send: a change by the browser's cookie, or a request of the challenge
 * protocol. No client of that is a page; it could not read the answer, but use up what the browser's address may do.
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

/** Names that nobody can register on the internet: of one machine, one network or one cluster. */
const privateName = /(^[^.]+|\.(localhost|local|internal|home\.arpa))$/;

/**
 * Refuses a Host that is neither that of SVC_PUBLIC_URL, nor an address, nor a private name such as `server:8000`. A
 * page whose own name leads to this server (DNS rebinding) is of the same origin to its browser, and would read the
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
