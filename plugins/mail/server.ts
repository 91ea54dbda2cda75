import { isLoopbackHost } from "../../platform/address.ts";
import { ConfigurationError } from "../../platform/errors.ts";

/** What nodemailer is told of a mail server. */
export interface MailServer {
  host: string;
  port: number;
  /** TLS from the first byte (smtps). */
  secure: boolean;
  /** No word without STARTTLS. */
  requireTLS: boolean;
  auth?: { user: string; pass: string };
}

/**
 * The server that `smtp://` (587, STARTTLS where it is offered) or `smtps://` (465) names. A password goes over no
 * network in the clear: with one, and not to this machine, STARTTLS is a must.
 *
 * @throws ConfigurationError, which never holds the address
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
    ...{ host, secure, port: port === "" ? (secure ? 465 : 587) : Number(port) },
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
