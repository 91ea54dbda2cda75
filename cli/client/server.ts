import { ConfigurationError } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import { printable } from "../text.ts";

/** A server that the user chose. Nothing is sent anywhere else. */
export interface Server {
  /** Origin and path without a trailing slash; credentials are kept under this key. */
  readonly base: string;
  readonly origin: string;
  /** Whether requests present the token in SVC_TOKEN. */
  readonly takesVariable?: true;
  /** The client certificate to present, and its key; both PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** The trial of `npm start`. */
export const DEFAULT_SERVER = "http://127.0.0.1:8000";

/**
 * The server to use: `--server`, else SVC_SERVER, else the one last signed in to, else this machine.
 * `last` is a function because the credentials file need not be readable if one of the first two is set.
 */
export function chooseServer(
  option: string | undefined,
  variable: string | undefined,
  last: () => string | undefined,
): Server {
  if (option !== undefined) {
    return parseServer(option, (fault) => new UsageError(`--server: ${fault}`));
  }
  if (variable?.trim()) {
    return parseServer(variable.trim(), (fault) => new ConfigurationError([`SVC_SERVER: ${fault}`]));
  }
  return parseServer(
    last() ?? DEFAULT_SERVER,
    (fault) => new ConfigurationError([`the stored server: ${fault}`]),
  );
}

/** Parses the address of a server, or throws the error that `error` creates. */
export function parseServer(text: string, error: (fault: string) => Error): Server {
  const shown = printable(text, 100);
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw error(`"${shown}" is not an http or https address${addressHint(text, shown)}`);
  }
  if (url.username || url.password) throw error("the address must not hold a user name or password");
  if (url.search || url.hash) throw error(`"${shown}" must end before "?" and "#"`);
  return { base: url.origin + url.pathname.replace(/\/+$/, ""), origin: url.origin };
}

function addressHint(text: string, shown: string): string {
  if (!/^([\w.-]+|\[[\da-f:]+\])(:\d+)?(\/|$)/i.test(text) || !URL.canParse(`http://${text}`)) return "";
  return `; did you mean ${isLoopback(`http://${text}`) ? "http" : "https"}://${shown}?`;
}

/** Whether the host can only be this machine. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** A warning if others can read the token on the connection, else undefined. */
export function plainHttpWarning(server: Server): string | undefined {
  if (!server.base.startsWith("http:") || isLoopback(server.base)) return undefined;
  return `warning: ${server.base} uses plain http, so others on the network can read the token; use https`;
}
