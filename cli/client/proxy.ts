import type { Environment } from "../../platform/variable.ts";
import { printable } from "../text.ts";
import { isLoopback } from "./server.ts";

const defaultPorts: Record<string, string> = { "http:": "80", "https:": "443" };

/** The proxy that Bun's fetch takes for a URL, for messages: its address without a password, and the variable. */
export function proxyOf(env: Environment, url: string): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const scheme = protocol.slice(0, -1);
  const name = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`, "all_proxy", "ALL_PROXY"].find(
    (one) => env[one],
  );
  if (name === undefined || isLoopback(url)) return undefined;
  const exempt = (env.no_proxy || env.NO_PROXY || "").split(",").map((one) => one.trim().replace(/^\./, ""));
  const isExempt = (one: string) =>
    one === "*" ||
    [hostname, `${hostname}:${port || defaultPorts[protocol]}`].some(
      (own) => own === one || (one && own.endsWith(`.${one}`)),
    );
  if (exempt.some(isExempt)) return undefined;
  return `${printable(env[name]!.replace(/(?<=^|\/)[^/]*@/, ""), 200)} (${name})`;
}
