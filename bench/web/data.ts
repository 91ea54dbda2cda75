import type { TransactionSql } from "postgres";
import { openSql } from "../../drizzle/client.ts";
import { newSecret, sha256, toHex } from "../../platform/secret.ts";
import { email, isRestricted } from "../api/data.ts";
import { type Writer, writerOf } from "../api/words.ts";

/** How many entries the timeline of an incident has: as many as its page shows at once. */
export const entries = 100;

/**
 * Gives the newest Open incidents the timeline of a busy day: notes, a tenth of them status reports, another tenth changes.
 * @returns the ids, the newest first
 */
export async function fillTimelines(url: string, incidents: number, count: number): Promise<number[]> {
  const ids: number[] = [];
  for (let id = incidents; id > 0 && ids.length < count; id -= 1) if (!isRestricted(id)) ids.push(id);
  const sql = openSql(url, { max: 1 });
  const writer = writerOf("timeline");
  try {
    await sql.begin(async (sql) => {
      for (const id of ids) await fillTimeline(sql, writer, id);
    });
    await sql`vacuum analyze`;
  } finally {
    await sql.end({ timeout: 5 });
  }
  return ids;
}

async function fillTimeline(sql: TransactionSql, writer: Writer, id: number): Promise<void> {
  const people = await sql<{ id: number; email: string }[]>`
    select individual.id::int, email from participant join individual on individual.id = individual_id
    where incident_id = ${id} order by participant.id`;
  for (let entry = 0; entry < entries; entry += 1) {
    const { id: authorId, email: actor } = people[entry % people.length]!;
    const at = sql`(select reported_at + ${entry} * interval '1 minute' from incident where id = ${id})`;
    const record = (kind: string, description: string, data = {}) => sql`
      insert into event (incident_id, at, actor, source, kind, description, data)
      values (${id}, ${at}, ${actor}, 'core', ${kind}, ${description}, ${sql.json(data)})`;
    if (entry % 10 === 4) await record("incident.updated", `Changed by ${actor}: ${writer.words(6)}`);
    else if (entry % 10 !== 9) await record("note", writer.text(24));
    else {
      const parts = [writer.text(16), writer.text(8), writer.text(4)] as const;
      const [report] = await sql`
        insert into status_report (incident_id, author_id, conditions, actions, needs, created_at)
        values (${id}, ${authorId}, ${parts[0]}, ${parts[1]}, ${parts[2]}, ${at}) returning id::int`;
      await record("report.written", "Status report", { report_id: report!.id });
    }
  }
}

/** Signs in the first `count` people in a browser each. @returns the headers of their requests */
export async function signInBrowsers(url: string, count: number): Promise<{ cookie: string }[]> {
  const sql = openSql(url, { max: 1 });
  const ids = Array.from({ length: count }, () => newSecret());
  try {
    for (const [at, id] of ids.entries())
      await sql`
        insert into session (id_hash, user_name, created_at, expires_at, signed_in_at)
        values (decode(${toHex(sha256(id))}, 'hex'), ${email(at + 1)}, now(), now() + interval '1 day', now())`;
  } finally {
    await sql.end({ timeout: 5 });
  }
  return ids.map((id) => ({ cookie: `svc_session=${id}` }));
}
