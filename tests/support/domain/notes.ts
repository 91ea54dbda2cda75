import { sql } from "drizzle-orm";
import type { TestServer } from "../http/server.ts";

/**
 * Gives an incident the notes `Entry 1`, `Entry 2` and so on, a second apart, before it was reported.
 * @returns the id of the first one; those of the others follow
 */
export async function insertNotes(
  { db }: Pick<TestServer, "db">,
  incidentId: number,
  count: number,
): Promise<number> {
  const [row] = await db.execute<{ first: string }>(sql`
    with written as (
      insert into event (incident_id, at, actor, source, kind, description)
      select ${incidentId}, reported_at - (${count} - n) * interval '1 second', 'carol@example.com', 'core', 'note', 'Entry ' || n
      from incident, generate_series(1, ${count}) as n where incident.id = ${incidentId} order by n
      returning id)
    select min(id) as first from written`);
  return Number(row!.first);
}
