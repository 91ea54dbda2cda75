import { BlockList, isIPv4 } from "node:net";
import { plainAddress } from "../../platform/address.ts";
import { ConfigurationError } from "../../platform/errors.ts";

export interface ProxyTrust {
  /** Whether X-Forwarded-For is used at all. */
  enabled: boolean;
  trusts(address: string): boolean;
}

/**
 * Reads SVC_FORWARDED_ALLOW_IPS: addresses and networks (10.0.0.0/8), comma-separated. `*` trusts everyone, so that
 * clients can claim any address (as with uvicorn's option of this name).
 * @throws ConfigurationError naming an invalid entry
 */
export function proxyTrust(enabled: boolean, allow: string): ProxyTrust {
  const list = new BlockList();
  const entries = allow
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
  for (const entry of entries) {
    if (entry === "*") return { enabled, trusts: () => true };
    const [, address = "", bits] = entry.match(/^([^/]+)(?:\/(\d+))?$/) ?? [];
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    try {
      if (bits === undefined) list.addAddress(address, family);
      else list.addSubnet(address, Number(bits), family);
    } catch (cause) {
      const message = `SVC_FORWARDED_ALLOW_IPS: "${entry}" is neither an address nor a network`;
      throw new ConfigurationError([message], { cause });
    }
  }
  return { enabled, trusts: (address) => list.check(address, isIPv4(address) ? "ipv4" : "ipv6") };
}

/**
 * Returns the client's address: the connection's, or with --proxy-headers the rightmost entry of X-Forwarded-For that
 * is not a trusted proxy. Each proxy appends the address it saw, so entries further left can be forged.
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | null,
  trust: ProxyTrust,
): string {
  let client = plainAddress(peer ?? "") ?? "unknown";
  if (!trust.enabled || forwardedFor === null) return client;
  const hops = forwardedFor.split(",").reverse();
  for (const hop of hops) {
    if (!trust.trusts(client)) break;
    // Some proxies append the port.
    const address = plainAddress(
      hop
        .trim()
        .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1")
        .replace(/^(\[.*\]):\d+$/, "$1"),
    );
    if (address === undefined) break;
    client = address;
  }
  return client;
}
