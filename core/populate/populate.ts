import { sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { isPostgresError, operatorsError } from "../../drizzle/database_error.ts";
import { costFormula, costFormulaRole, incidentPriority, incidentType } from "../../drizzle/schema/index.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { Conflict } from "../../platform/errors.ts";
import { formula, incidentPriorities, incidentTypes, multipliers } from "./defaults.ts";

export interface Populated {
  /** What was created, in that order. */
  created: { table: string; name: string }[];
}

/**
 * Writes the default incident types, priorities and cost constants, all or none. Existing records with a default's name
 * are kept, so it may run any number of times, even concurrently.
 *
 * @throws Conflict when the tables do not exist yet
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 */
export async function populate(db: Database | Transaction, clock: Clock = systemClock): Promise<Populated> {
  const at = clock.now();
  const stamps = { createdAt: at, updatedAt: at };
  try {
    return await db.transaction(async (tx) => {
      // Overrides settings of the role or the database.
      await tx.execute(sql.raw("set local statement_timeout = 0; set local search_path = public"));
      // In the same order in every run, so that concurrent runs cannot deadlock.
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
      // Only with a new formula: a role that the operator has removed stays removed.
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

/** 42P01, 42703: a table or column of this release does not exist. */
function asOperatorsError(error: unknown): unknown {
  // drizzle's error contains the SQL and its parameters. The error of PostgreSQL or the socket is its cause.
  const cause = (error as { cause?: unknown }).cause ?? error;
  if (isPostgresError(cause) && ["42P01", "42703"].includes(cause.code)) {
    return new Conflict("The database schema is out of date: svc database upgrade", { cause });
  }
  return operatorsError(cause);
}
