import type { Config } from "../core/config.ts";
import type { Plugins } from "../core/plugin/choose.ts";
import type { ScheduleContext } from "../core/schedule/claims.ts";
import type { Database } from "../drizzle/client.ts";
import type { Log } from "../platform/log.ts";
import type { WorkerHealth } from "./health.ts";
import type { ObservedSchedule } from "./metrics.ts";
import type { Outage } from "./outage.ts";
import type { DatabaseTime } from "./time.ts";

/** Everything that a worker is made of. */
export interface WorkerDeps {
  /** The schedule's own connections, as they are now. */
  schedule: () => ScheduleContext;
  /** The tasks' connections, as they are now. */
  db: () => Database;
  /** Called when nobody answers on the connections. */
  reopen: () => void;
  time: DatabaseTime;
  config: Config;
  log: Log;
  plugins: Plugins;
  /** One for all that a worker does, so that an outage is told once. */
  outage?: Outage;
  /** Told of the worker's heartbeat, if somebody asks for it. */
  health?: WorkerHealth;
  /** Told of runs and deliveries, if somebody wants to know. */
  observed?: ObservedSchedule;
}
