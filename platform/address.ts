import { isIP, isIPv4 } from "node:net";

/**
 * The unit that counts as "one address" for rate limits and the same-address rule: an IPv4 address; an IPv6 /64, as a
 * household or laptop changes addresses within it; or this machine (127.0.0.0/8 and ::1). An IPv4-mapped IPv6 address
 * (::ffff:192.0.2.1) counts as the IPv4 address.
 *
 * @returns `unknown` for an invalid address, so that such callers share one scope and one limit
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

/** Whether an address is in that scope. An unknown address never matches another. */
export function isInScope(address: string, scope: string): boolean {
  return scope !== "unknown" && addressScope(address) === scope;
}

/** A cache, as each poll needs this, and most polls come from a few addresses. */
const scopes = new Map<string, string>();

function scopeOf(address: string): string {
  const plain = plainAddress(address);
  if (plain === undefined) return "unknown";
  if (plain === "::1" || plain.startsWith("127.")) return "loopback";
  return isIPv4(plain) ? plain : `${groupsOf(plain).slice(0, 4).join(":")}::/64`;
}

/**
 * The address without zone, brackets and IPv4 mapping, in canonical form (RFC 5952); undefined for an invalid address.
 * Uses `isIP` and the URL parser; ipaddr.js would also accept `127.1`, and treats ::192.0.2.1 as a mapped address.
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

/** The eight groups of a canonical IPv6 address. */
function groupsOf(address: string): string[] {
  const [left = [], right = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right];
}

/** Whether this is an address, or a network (192.0.2.0/24) whose bits after the prefix are zero, as sshd requires. */
export function isNetwork(text: string): boolean {
  const [, address = "", prefix] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  if (isIP(address) === 0) return false;
  const bits = isIPv4(address)
    ? address.split(".").map((byte) => Number(byte).toString(2).padStart(8, "0"))
    : groupsOf(new URL(`http://[${address}]`).hostname.slice(1, -1)).map((group) =>
        Number.parseInt(group, 16).toString(2).padStart(16, "0"),
      );
  const all = bits.join("");
  const length = Number(prefix ?? all.length);
  return length <= all.length && !all.slice(length).includes("1");
}

/** Whether the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || addressScope(hostname) === "loopback";
}

/** Formats a host's name or address for a URL. */
export function hostInUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
