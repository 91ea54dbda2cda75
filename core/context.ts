import type { Database, Transaction } from "../drizzle/client.ts";
import type { EventCounts } from "./audit.ts";
import type { Background } from "./background.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Log } from "./log.ts";
import type { Plugins } from "./plugin/choose.ts";
import type { Telemetry } from "./telemetry/telemetry.ts";

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

/** For verbs that also ask plugins. A plugin is never called inside a transaction: it may take half a minute. */
export interface PluginContext extends Context {
  plugins: Plugins;
  /** Where work goes on that a request does not wait for; in a program that only asks, nowhere. */
  background?: Background;
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
