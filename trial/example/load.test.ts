import { beforeAll, describe, expect, test } from "bun:test";
import { getTableName, sql } from "drizzle-orm";
import { openDatabase } from "../../drizzle/client.ts";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { document, incident, incidentType } from "../../drizzle/schema/index.ts";
import { createTestDatabase, useDatabase } from "../../tests/support/database/database.ts";
import { exampleTables, readExample, rowsAt } from "./data.ts";
import { loadExample } from "./load.ts";

const now = new Date("2026-11-20T12:00:00Z");
const rows = rowsAt(await readExample(), now);

const client = useDatabase(4);
beforeAll(async () => {
  await loadExample(client.db, now);
});

const count = async (query: string) => {
  const [row] = await client.db.execute(sql.raw(`select count(*)::int as count from ${query}`));
  return Number(row?.count);
};

test("all rows are inserted", async () => {
  for (const [name, table] of Object.entries(exampleTables)) {
    const { length } = rows[name as keyof typeof exampleTables];
    expect([name, await count(getTableName(table))]).toEqual([name, length]);
  }
});

test("the next record gets the next number, and search finds words", async () => {
  const { db } = client;
  const [type] = await db.select().from(incidentType).limit(1);
  const stamps = { createdAt: now, updatedAt: now };
  class Undo extends Error {}
  const undone = db.transaction(async (tx) => {
    const [made] = await tx
      .insert(incident)
      .values({
        title: "x",
        description: "x",
        incidentTypeId: type!.id,
        reportedAt: now,
        ...stamps,
        incidentPriorityId: sql`(select min(id) from incident_priority)` as never,
      })
      .returning();
    const next = rows.incident.length + 1;
    expect([made?.id, made?.name]).toEqual([next, `INC-${next}`]);
    const [page] = await tx
      .insert(document)
      .values({ name: "x", resourceType: "x", ...stamps })
      .returning();
    expect(page?.id).toBe(rows.document.length + 1);
    throw new Undo();
  });
  await expect(undone).rejects.toBeInstanceOf(Undo);
  expect(await count("document where search @@ websearch_to_tsquery('english', 'quorum')")).toBeGreaterThan(
    0,
  );
  expect(await count("incident where search is null")).toBe(0);
});

test("it loads only once and only into an empty database, even concurrently", async () => {
  await expect(loadExample(client.db, now)).rejects.toMatchObject({
    code: "conflict",
    detail: "The example needs an empty database, but this one has data already (individual)",
  });
  await using other = await createTestDatabase();
  const { db, close } = openDatabase(other.url, 3);
  try {
    const both = await Promise.allSettled([loadExample(db, now), loadExample(db, now)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const refused = both.find((one) => one.status === "rejected");
    expect(refused?.reason).toMatchObject({ code: "conflict" });
    await db.execute(
      sql`truncate individual, incident, document, team, service, term, definition, application cascade`,
    );
    await db
      .insert(document)
      .values({ name: "Ours", resourceType: "reference", createdAt: now, updatedAt: now });
    await expect(loadExample(db, now)).rejects.toMatchObject({
      detail: expect.stringMatching(/\(document\)$/),
    });
    expect(await db.$count(incident)).toBe(0);
  } finally {
    await close();
  }
});

test("the schema is as an upgrade leaves it", async () => {
  const { applied, triggers } = await upgrade({ url: client.url });
  expect([applied, triggers.filled]).toEqual([[], {}]);
});

describe("there is work to do for", () => {
  const at = `timestamptz '${now.toISOString()}'`;
  const openTask = "t.status = 'Open' and t.reminders and t.deleted_at is null";
  // Reminders that are due and have not been sent: at anchor + k · N hours, where k is the newest.
  const dueReports = `(select i.id, a.anchor, floor(extract(epoch from ${at} - a.anchor) / 3600 / p.reminder_hours)::int as k
    from incident i join incident_priority p on p.id = i.incident_priority_id,
    lateral (select coalesce(max(r.created_at), i.created_at) as anchor from status_report r where r.incident_id = i.id) a
    where i.status = 'Active') due
    where k >= 1 and not exists (select from status_report_reminder s
      where s.incident_id = due.id and s.anchor = due.anchor and s.k >= due.k)`;
  test.each([
    ["incident-status-report-reminder", dueReports, 4],
    ["incident-daily-summary: Active", "incident where status = 'Active'", 8],
    [
      "incident-daily-summary: Stable today",
      `incident where status = 'Stable' and stable_at > ${at} - interval '1 day'`,
      2,
    ],
    ["incident-daily-summary: Closed today", `incident where closed_at > ${at} - interval '1 day'`, 2],
    ["calculate-incident-cost", "incident where status = 'Active' or costed_basis <> cost_basis", 43],
    [
      "incident-task-reminders",
      `task t join incident i on i.id = t.incident_id and i.status = 'Active' where ${openTask} and t.resolve_by < ${at}
        and (t.last_reminder_at is null or t.last_reminder_at < ${at} - interval '1 day')
        and exists (select from task_assignee a where a.task_id = t.id)`,
      8,
    ],
    [
      "incident-task-sync: never read",
      "document d join incident i on i.id = d.incident_id and i.status <> 'Closed' where d.task_cursor is null and d.plugin_slug = 'markdown'",
      3,
    ],
    [
      "incident-task-sync: changed since",
      `document d join incident i on i.id = d.incident_id and i.status <> 'Closed'
        join document_content c on c.document_id = d.id where d.task_cursor <> c.version::text`,
      3,
    ],
    ["term-sync", "term where source is not null and deleted_at is null", 40],
    [
      "document-term-sync",
      "document where plugin_slug is not null and (term_content_hash is null or term_content_hash <> content_hash)",
      5,
    ],
    ["application-sync", "application where source is not null", 9],
  ])("%s", async (_task, query, least) => {
    expect(await count(query)).toBeGreaterThanOrEqual(least);
  });

  test("but not for every record: a reminder was sent, a report is not due, a task is muted", async () => {
    expect(await count("status_report_reminder")).toBeGreaterThan(0);
    expect(await count(dueReports)).toBeLessThan(8);
    expect(await count("task where not reminders and status = 'Open'")).toBe(1);
    expect(await count(`task where last_reminder_at > ${at} - interval '1 day'`)).toBeGreaterThan(0);
    expect(await count("document where task_cursor is not null")).toBeGreaterThan(20);
    expect(await count("document where term_content_hash = content_hash")).toBeGreaterThan(20);
  });
});

test("commanders match the rotations in the database", async () => {
  const { rows } = await client.db
    .execute(
      sql`
      select i.name from incident i
      join incident_type t on t.id = i.incident_type_id join rotation r on r.service_id = t.commander_service_id
      join incident_priority p on p.id = i.incident_priority_id and not p.reporter_commands
      join lateral (select pa.individual_id from participant_role o join participant pa on pa.id = o.participant_id
        where o.incident_id = i.id and o.role = 'commander' order by o.assumed_at limit 1) c on true
      join rotation_member m on m.service_id = r.service_id and m.position =
        floor(extract(epoch from i.reported_at + interval '2 s' - r.starts_at) / 3600 / r.shift_hours)::int
          % (select count(*)::int from rotation_member n where n.service_id = r.service_id)
      where m.individual_id <> c.individual_id`,
    )
    .then((found) => ({ rows: [...found] }));
  expect(rows).toEqual([]);
});
