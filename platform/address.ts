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
  if (isIPv4(plain)) return plain.startsWith("127.") ? "loopback" : plain;
  const groups = expandIPv6(plain);
  if (groups.slice(0, 7).every((group) => group === 0) && groups[7] === 1) return "loopback";
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The address without zone, brackets and IPv4 mapping; undefined for what is no address. */
export function plainAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const bare = text
    .trim()
    .replace(/^\[|\]$/g, "")
    .replace(/%.*$/, "");
  if (isIP(bare) === 0) return undefined;
  if (isIPv4(bare)) return bare;
  const groups = expandIPv6(bare);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    const [high = 0, low = 0] = groups.slice(6);
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  return bare.toLowerCase();
}

/** The eight groups of a valid IPv6 address. */
function expandIPv6(address: string): number[] {
  const withoutDots = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(":"),
  );
  const [head = "", tail] = withoutDots.split("::");
  const parse = (part: string) =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const left = parse(head);
  const right = tail === undefined ? [] : parse(tail);
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** Whether the host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || addressScope(hostname) === "loopback";
}

/** A host's name or address as it stands in a URL. */
export function hostInUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
