import type { Database, Transaction } from "../drizzle/client.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";
import type { EventCounts } from "./audit.ts";
import type { Config } from "./config.ts";

/** What every verb of core is handed: where things are kept, what time it is, how we are set up, where to tell. */
export interface Context {
  db: Database | Transaction;
  clock: Clock;
  config: Config;
  log: Log;
  /** Where it is counted; none unless it is configured. */
  telemetry?: Telemetry;
  /** Where unauthenticated events are counted; only a server has any. */
  counts?: EventCounts;
}

/** A person, as vouched for by single sign-on. */
export interface Identity {
  /** Canonical user name. */
  user: string;
  groups: string[];
}

/** Who acts: the bearer of an access token. */
export interface Actor extends Identity {
  kind: "user";
  admin: boolean;
  tokenId: string;
  expiresAt: Date;
}
