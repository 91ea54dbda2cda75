import type { Config } from "../core/config.ts";
import type { Plugins } from "../core/plugin/choose.ts";
import type { ScheduleContext } from "../core/schedule/claims.ts";
import type { Database } from "../drizzle/client.ts";
import type { Log } from "../platform/log.ts";
import type { WorkerHealth } from "./health.ts";
import type { ObservedSchedule } from "./metrics.ts";
import type { Outage } from "./outage.ts";
import type { DatabaseTime } from "./time.ts";

/** A worker's dependencies. */
export interface WorkerDeps {
  /** The current connections of the schedule. */
  schedule: () => ScheduleContext;
  /** The current connections of the tasks. */
  db: () => Database;
  /** Called when the database no longer answers on these connections. */
  reopen: () => void;
  time: DatabaseTime;
  config: Config;
  log: Log;
  plugins: Plugins;
  /** Shared by everything the worker does, so that an outage is logged once. */
  outage?: Outage;
  /** Receives the worker's heartbeat. */
  health?: WorkerHealth;
  /** Receives runs and deliveries for metrics. */
  observed?: ObservedSchedule;
}
