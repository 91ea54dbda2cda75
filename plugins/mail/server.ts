import { isLoopbackHost } from "../../platform/address.ts";
import { ConfigurationError } from "../../platform/errors.ts";

/** The options of a mail server for nodemailer. */
export interface MailServer {
  host: string;
  port: number;
  /** TLS from the first byte (smtps). */
  secure: boolean;
  /** Fail if the server does not offer STARTTLS. */
  requireTLS: boolean;
  auth?: { user: string; pass: string };
}

/**
 * Parses `smtp://` (port 587, STARTTLS if the server offers it) or `smtps://` (465). A password is never sent over a
 * network in clear text: with one, STARTTLS is required unless the server is on this machine.
 *
 * @throws ConfigurationError, which never contains the address
 */
export function mailServerOf(text: string): MailServer {
  const url = URL.parse(text);
  const secure = url?.protocol === "smtps:";
  if (
    !url ||
    (!secure && url.protocol !== "smtp:") ||
    url.hostname === "" ||
    /[/?#]./.test(url.href.slice(8))
  )
    throw new ConfigurationError(["the url is not like smtps://user:password@mail.example.com:465"]);
  const { hostname, port, username, password } = url;
  const host = hostname.replace(/^\[|\]$/g, "");
  return {
    host,
    secure,
    port: port === "" ? (secure ? 465 : 587) : Number(port),
    requireTLS: !secure && username !== "" && !isLoopbackHost(host),
    ...(username === "" ? {} : { auth: { user: decoded(username), pass: decoded(password) } }),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ConfigurationError(["the url has a % in its user or password that is not written %25"]);
  }
}
