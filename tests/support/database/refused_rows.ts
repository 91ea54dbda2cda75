import { sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";

/** Makes PostgreSQL reject writes of rows that meet a condition on `new`, until it is disposed. */
export async function refuseRows(db: Database, table: string, condition: string): Promise<AsyncDisposable> {
  await db.execute(
    sql.raw(`
    create function refuse() returns trigger language plpgsql as
      $$ begin if ${condition} then raise exception 'no'; end if; return new; end $$;
    create trigger refuse before insert or update on ${table} for each row execute function refuse()`),
  );
  return {
    [Symbol.asyncDispose]: async () => void (await db.execute(sql`drop function refuse cascade`)),
  };
}
