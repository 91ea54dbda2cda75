import { Unavailable } from "../../platform/errors.ts";
import { printable } from "../text.ts";
import { isLoopback, type Server } from "./server.ts";
import { type AccessToken, readToken } from "./token.ts";

/** Parses the server's answers. They are untrusted, so they are checked here before use. */

/** A sign-in that waits for approval. Times are in seconds. */
export interface Challenge {
  challengeUrl: string;
  pollingUrl: string;
  lifetime: number;
  interval: number;
  /** The code that the approve page also shows. An old server has none. */
  userCode: string | undefined;
  /** Whether the server requires our verifier, and holds polls. An old server does neither. */
  bound: boolean;
  /** Whether the server accepts client certificates; an old server does not say. */
  certificates?: boolean | undefined;
}

export type Decision =
  | { status: "pending" | "expired" | "denied" | "unknown" }
  | { status: "success"; token: AccessToken; user: string | undefined };

/** The server issued a token that this machine cannot keep. */
export class UnusableToken extends Unavailable {
  constructor(
    detail: string,
    readonly token: AccessToken,
  ) {
    super(detail);
  }
}

const LONGEST_URL = 2048;
const LONGEST_LIFETIME = 3600;

/** @throws Unavailable if the answer is not a challenge, or has an address of another server. */
export function readChallenge(body: Record<string, unknown>, server: Server): Challenge {
  const lifetime = finite(body.expires_in ?? 120, "expires_in", server);
  if (lifetime <= 0) throw nonsense(server, "an expired sign-in");
  const interval = finite(body.interval ?? 2, "interval", server);
  const bound = body.binding === "S256";
  const userCode = bound ? body.user_code : undefined;
  if (userCode !== undefined && !isUserCode(userCode)) throw nonsense(server, "an invalid user_code");
  return {
    challengeUrl: ownUrl(body.challenge_url, "challenge_url", server),
    pollingUrl: ownUrl(body.polling_url, "polling_url", server),
    lifetime: Math.min(lifetime, LONGEST_LIFETIME),
    interval: Math.min(Math.max(interval, 0.1), 30),
    userCode,
    bound,
    certificates: typeof body.client_certificates === "boolean" ? body.client_certificates : undefined,
  };
}

function finite(value: unknown, field: string, server: Server): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw nonsense(server, `an invalid ${field}`);
}

function isUserCode(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9 -]{0,31}$/.test(value);
}

/** @throws Unavailable if the answer has an unknown status, or an invalid token. */
export function readDecision(body: Record<string, unknown>, now: Date, server: Server): Decision {
  const { status } = body;
  switch (status) {
    case "pending":
    case "expired":
    case "denied":
    case "unknown":
      return { status };
    case "success": {
      const token = readToken(body.encoded_jwt);
      if (token === undefined) throw nonsense(server, "an invalid access token");
      if (token.expiresAt <= now) {
        const { detail } = nonsense(server, "an expired token (is the clock of this machine right?)");
        throw new UnusableToken(detail, token);
      }
      return { status, token, user: readUser(body.user) ?? readUser(token.subject) };
    }
    default:
      throw nonsense(server, `the status ${JSON.stringify(printable(String(status), 40))}`);
  }
}

/** A user name that can be shown and stored unchanged. */
export function readUser(user: unknown): string | undefined {
  if (typeof user !== "string" || user === "" || user.length > 320 || printable(user) !== user)
    return undefined;
  return user;
}

/** A URL from the server, if it is on that same server. */
function ownUrl(text: unknown, field: string, server: Server): string {
  const url = typeof text === "string" && text.length <= LONGEST_URL ? URL.parse(text) : null;
  if (url === null) throw nonsense(server, `an invalid ${field}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw nonsense(server, `a ${field} that is not http or https (${printable(url.protocol, 40)})`);
  }
  if (url.username || url.password) throw nonsense(server, `a ${field} with a user name in it`);
  if (url.origin !== server.origin) {
    if (isSameMachine(url, server)) {
      throw new Unavailable(
        `the server at ${server.base} calls itself ${url.origin}; use --server ${url.origin}`,
      );
    }
    throw nonsense(server, `a ${field} of another server, ${printable(url.origin, 200)}`);
  }
  return url.href;
}

/** Only the name differs, and both names mean this machine, so this is not an attack. */
function isSameMachine(url: URL, server: Server): boolean {
  const own = new URL(server.base);
  return (
    isLoopback(url.href) && isLoopback(server.base) && url.port === own.port && url.protocol === own.protocol
  );
}

function nonsense(server: Server, what: string): Unavailable {
  return new Unavailable(`${server.base} answered with ${what}; nothing was opened or stored`);
}
