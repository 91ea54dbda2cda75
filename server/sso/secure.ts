import { isLoopbackHost } from "../../platform/address.ts";
import { ConfigurationError } from "../../platform/errors.ts";

/**
 * Requires https or a loopback address: control of this URL's content means control of everybody's identity.
 * @throws ConfigurationError naming the variable
 */
export function requireSecure(variable: string, url: URL): void {
  if (url.protocol === "https:" || isLoopbackHost(url.hostname)) return;
  throw new ConfigurationError([
    `${variable}: ${url.origin} must be https; only this machine's own may be http`,
  ]);
}
