import { isLoopbackHost } from "../../platform/address.ts";
import { ConfigurationError } from "../../platform/errors.ts";

/**
 * Whoever can change what stands at this address decides who everybody is: it must be https, or this machine.
 * @throws ConfigurationError naming the variable
 */
export function requireSecure(variable: string, url: URL): void {
  if (url.protocol === "https:" || isLoopbackHost(url.hostname)) return;
  throw new ConfigurationError([
    `${variable}: ${url.origin} must be https; only this machine's own may be http`,
  ]);
}
