import type { Database, Transaction } from "../drizzle/client.ts";
import type { Clock } from "../platform/clock.ts";
import { Forbidden } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";
import type { EventCounts } from "./audit.ts";
import type { Config } from "./config.ts";

/** The input of every operation in core: the database, the time, the configuration, the log. */
export interface Context {
  db: Database | Transaction;
  clock: Clock;
  config: Config;
  log: Log;
  /** Metrics, if configured. */
  telemetry?: Telemetry;
  /** Counts unauthenticated events. Only in a server. */
  counts?: EventCounts;
}

/** A person, as identified by single sign-on. */
export interface Identity {
  /** Canonical user name. */
  user: string;
  groups: string[];
  /** As other people know them, if the issuer says so. */
  name?: string;
}

/** Somebody who has signed in: in a terminal, or in a browser. */
export interface Actor extends Identity {
  kind: "user";
  admin: boolean;
  /** The row of `token`: of the access token, or of the sign-in that a certificate belongs to. None in a browser. */
  tokenId?: string;
  /** The key of the row of `session`, in hex, in a browser. */
  sessionKey?: string;
  expiresAt: Date;
  /** Set if a client certificate of ours authenticated the request. `sha256` is in base64url. */
  certificate?: { sha256: string };
  /** The incident that this request reads together with lists of what belongs to it, which then need not ask again. */
  sees?: number;
}

/** The row of `token`. @throws Forbidden in a browser, whose session gets no credentials */
export function tokenOf({ tokenId }: Actor): string {
  if (tokenId === undefined) throw new Forbidden("Credentials are issued in a terminal only: svc login");
  return tokenId;
}

/** @param what as in "Only admins can read the audit log" @throws Forbidden */
export function requireAdmin({ admin }: Actor, what: string): void {
  if (!admin) throw new Forbidden(`Only admins can ${what}`);
}
