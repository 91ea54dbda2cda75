import { openDatabase } from "../../drizzle/client.ts";
import { withoutQuery } from "../../drizzle/query_error.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { readValue, variables } from "../config.ts";
import type { Environment } from "../../platform/variable.ts";
import { operatorsError } from "../../drizzle/database_error.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { assertServable, schemaStatus } from "../../drizzle/revision/status.ts";
import type { ScheduleContext } from "./claim.ts";
import { databaseClock } from "./database_clock.ts";

export type OperatorContext = Pick<ScheduleContext, "db" | "databaseClock" | "config"> & { clock: Clock };

/**
 * Looks at the schedule, or changes it, from outside of a worker. Of the configuration only what it needs is read.
 *
 * @throws ConfigurationError for a time zone that is none
 * @throws Conflict when the schema is not one that this release can work on
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 */
export async function operate<T>(
  { url, environment }: { url: string; environment: Environment },
  use: (context: OperatorContext) => Promise<T>,
): Promise<T> {
  const { value, fault } = readValue(environment, variables.timezone);
  if (fault) throw new ConfigurationError([fault]);
  const { db, close } = openDatabase(url, 4);
  try {
    assertServable(await schemaStatus(db));
    return await use({ db, databaseClock, config: { timezone: value as string }, clock: systemClock });
  } catch (error) {
    throw operatorsError(withoutQuery(error));
  } finally {
    await close();
  }
}
