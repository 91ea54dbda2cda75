import { isIP, isIPv4 } from "node:net";

/**
 * What counts as "one address" for rate limits and the same-address rule: an IPv4 address; an IPv6 /64, since one
 * household or laptop changes within it; and one name for this machine (127.0.0.0/8 and ::1).
 * An IPv4 address written as IPv6 (::ffff:192.0.2.1) is that IPv4 address.
 *
 * @returns `unknown` for what is no address, so that such callers share one name and one limit
 */
export function addressScope(address: string): string {
  let scope = scopes.get(address);
  if (scope === undefined) {
    if (scopes.size >= 10_000) scopes.clear();
    scope = scopeOf(address);
    scopes.set(address, scope);
  }
  return scope;
}

/** Whether an address is of that scope. Nobody is at the same address as somebody whose address is not known. */
export function isInScope(address: string, scope: string): boolean {
  return scope !== "unknown" && addressScope(address) === scope;
}

/** Each poll asks, and most come from few addresses. */
const scopes = new Map<string, string>();

function scopeOf(address: string): string {
  const plain = plainAddress(address);
  if (plain === undefined) return "unknown";
  if (plain === "::1" || plain.startsWith("127.")) return "loopback";
  return isIPv4(plain) ? plain : `${firstFourGroups(plain)}::/64`;
}

/**
 * The address without zone, brackets and IPv4 mapping, in its canonical form (RFC 5952); undefined for what is no address.
 * `isIP` and the URL parser do the parsing; ipaddr.js would also accept `127.1`, and takes ::192.0.2.1 for a mapped address.
 */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const bare = text
    .trim()
    .replace(/^\[|\]$/g, "")
    .replace(/%.*$/, "");
  if (isIP(bare) !== 6) return isIPv4(bare) ? bare : undefined;
  const canonical = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const mapped = canonical.match(/^::ffff:([^:]+):([^:]+)$/)?.slice(1);
  if (!mapped) return canonical;
  return mapped
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join(".");
}

/** The first half of a canonical IPv6 address. */
function firstFourGroups(address: string): string {
  const [left = [], right = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}

/** Whether the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || addressScope(hostname) === "loopback";
}

/** A host's name or address as it stands in a URL. */
export function hostInUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
