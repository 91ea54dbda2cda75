import { sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { isPostgresError, operatorsError } from "../../drizzle/database_error.ts";
import { costFormula, costFormulaRole, incidentPriority, incidentType } from "../../drizzle/schema/index.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { Conflict } from "../../platform/errors.ts";
import { formula, incidentPriorities, incidentTypes, multipliers } from "./defaults.ts";

export interface Populated {
  /** What was not there before, in the order it was written. */
  created: { table: string; name: string }[];
}

/**
 * Writes the default incident types, priorities and cost constants, all or none. What exists under a default's name
 * stays as the operator made it, so it may run as often as one likes, also several times at once.
 *
 * @throws Conflict when the tables are not there yet
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 */
export async function populate(db: Database | Transaction, clock: Clock = systemClock): Promise<Populated> {
  const at = clock.now();
  const stamps = { createdAt: at, updatedAt: at };
  try {
    return await db.transaction(async (tx) => {
      // Whatever the role or the database presets.
      await tx.execute(sql.raw("set local statement_timeout = 0; set local search_path = public"));
      // The same order in every run: those that run side by side wait for one another and never in a circle.
      const types = await tx
        .insert(incidentType)
        .values(incidentTypes.map((values) => ({ ...values, ...stamps })))
        .onConflictDoNothing({ target: incidentType.name })
        .returning({ name: incidentType.name });
      const priorities = await tx
        .insert(incidentPriority)
        .values(incidentPriorities.map((values) => ({ ...values, ...stamps })))
        .onConflictDoNothing({ target: incidentPriority.name })
        .returning({ name: incidentPriority.name });
      const formulas = await tx
        .insert(costFormula)
        .values({ ...formula, createdAt: at })
        .onConflictDoNothing({ target: costFormula.version })
        .returning({ version: costFormula.version });
      // Only with the formula itself: a role that the operator took out stays out.
      for (const { version } of formulas) {
        await tx
          .insert(costFormulaRole)
          .values(multipliers.map((values) => ({ formulaVersion: version, ...values })));
      }
      const created = [
        ...types.map(({ name }) => ({ table: "incident_type", name })),
        ...priorities.map(({ name }) => ({ table: "incident_priority", name })),
        ...formulas.map(({ version }) => ({ table: "cost_formula", name: String(version) })),
      ];
      return { created };
    });
  } catch (error) {
    throw asOperatorsError(error);
  }
}

/** 42P01, 42703: a table or a column that this release has is not there. */
function asOperatorsError(error: unknown): unknown {
  // drizzle's own error holds the SQL and its parameters; what PostgreSQL or the socket said is below.
  const cause = (error as { cause?: unknown }).cause ?? error;
  if (isPostgresError(cause) && ["42P01", "42703"].includes(cause.code)) {
    return new Conflict("The database schema is out of date: svc database upgrade", { cause });
  }
  return operatorsError(cause);
}
