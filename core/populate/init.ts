import { openDatabase } from "../../drizzle/client.ts";
import { createDatabase } from "../../drizzle/revision/create_database.ts";
import { type ChangeOptions, type UpgradeResult, upgrade } from "../../drizzle/revision/upgrade.ts";
import { type Populated, populate } from "./populate.ts";

export interface InitResult extends UpgradeResult, Populated {
  /** The database's name, if it was created. */
  database?: string;
}

/**
 * Prepares a database from scratch: creates it, upgrades it to head, installs the triggers, writes the defaults. On a
 * prepared one it does nothing. Safe to run concurrently from several machines.
 *
 * @throws Unavailable when PostgreSQL refuses us, or does not let us create a database; see also `upgrade`
 */
export async function init(options: ChangeOptions): Promise<InitResult> {
  const database = await createDatabase(options.url);
  const upgraded = await upgrade(options);
  const { db, close } = openDatabase(options.url, 1);
  try {
    return { ...upgraded, ...(await populate(db)), ...(database === undefined ? {} : { database }) };
  } finally {
    await close();
  }
}
