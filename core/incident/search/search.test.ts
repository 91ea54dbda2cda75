import { beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { openDatabase } from "../../../drizzle/client.ts";
import { incident, individual } from "../../../drizzle/schema/index.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { noteAsked, pagesRead } from "../../../tests/support/database/statements.ts";
import { insertIncident } from "../../../tests/support/domain/incident.ts";
import { until } from "../../../tests/support/process/until.ts";
import type { Actor, Context } from "../../context.ts";
import { listIncidents } from "../incident/list.ts";
import { searchAll } from "./search.ts";

const at = new Date("2026-12-01T12:00:00Z");
const client = useDatabase(3);
let ids: Awaited<ReturnType<typeof insertIncident>>;
beforeAll(async () => {
  ids = await insertIncident(client.db, at);
});

const memberOf = (user: string): Actor => ({
  ...{ kind: "user", user, groups: [], admin: false, tokenId: "", expiresAt: new Date(8.64e15) },
});
const stranger = memberOf("stranger@example.com");
const contextOf = (db: Context["db"]) => ({ db }) as Context;

async function insert(count: number, title: string, visibility: "Open" | "Restricted"): Promise<number[]> {
  const { incidentTypeId, incidentPriorityId } = ids;
  const rows = await client.db.execute<{ id: string }>(sql`
    insert into incident (title, description, visibility, incident_type_id, incident_priority_id, reported_at,
      created_at, updated_at)
    select ${title}, '', ${visibility}, ${incidentTypeId}, ${incidentPriorityId}, ${at.toISOString()}::timestamptz,
      now(), now()
    from generate_series(1, ${count}::int) returning id`);
  return rows.map(({ id }) => Number(id));
}

/** The page accesses of a search. */
async function pagesReadFor(actor: Actor, q: string): Promise<number> {
  const alone = openDatabase(client.url, 1);
  try {
    await alone.db.execute(sql`set enable_seqscan = off`);
    const asked = noteAsked(alone.db);
    await searchAll(contextOf(alone.db), actor, { q });
    return await pagesRead(alone.db, asked.at(-1)!);
  } finally {
    await alone.close();
  }
}

test("a word of many hidden incidents costs no more than twice an unknown one", async () => {
  await insert(1000, "filler", "Open");
  const hidden = await insert(20_000, "wombat", "Restricted");
  await insert(1000, "filler", "Open");
  await client.db.execute(sql`analyze`);
  const unknown = await pagesReadFor(stranger, "unheard");
  expect(await pagesReadFor(stranger, "wombat")).toBeLessThanOrEqual(2 * unknown);
  expect(await searchAll(contextOf(client.db), stranger, { q: "wombat" })).toEqual([]);

  // A participant finds theirs, however old, beside the Open ones.
  const [alice] = await client.db.select().from(individual).where(eq(individual.id, ids.alice));
  const [first] = hidden;
  await client.db.execute(
    sql`insert into participant (incident_id, individual_id, joined_at) values (${first}, ${ids.alice}, now())`,
  );
  const [open] = await insert(1, "wombat", "Open");
  const found = async (actor: Actor) =>
    (await searchAll(contextOf(client.db), actor, { q: "wombat" })).map(({ id }) => id);
  const listed = async (actor: Actor) =>
    (
      await listIncidents({ ...contextOf(client.db), config: {} } as Context, actor, { q: "wombat" })
    ).items.map(({ id }) => id);
  const participant = memberOf(alice!.email);
  for (const find of [found, listed]) {
    expect((await find(participant)).toSorted((a, b) => a - b)).toEqual([first!, open!]);
    expect(await find(stranger)).toEqual([open!]);
  }
  await client.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, open!));
  expect(await found(stranger)).toEqual([]);
}, 120_000);

/** Inserts so many records of each kind that belong to an incident. */
async function insertRecords(incidentId: number, count: number, word: string, db = client.db): Promise<void> {
  const each = sql`from generate_series(1, ${count}::int) n`;
  await db.execute(sql`
    insert into document (name, resource_type, incident_id, created_at, updated_at)
    select ${word}, 'reference', ${incidentId}::bigint, now(), now() ${each}`);
  await db.execute(sql`
    insert into task (incident_id, description, owner_id, resolve_by, created_at, updated_at)
    select ${incidentId}::bigint, ${word}, ${ids.alice}::bigint, now(), now(), now() ${each}`);
  await db.execute(sql`
    insert into event (incident_id, at, actor, source, kind, description)
    select ${incidentId}::bigint, now(), 'system', 'core', 'note', ${word} ${each}`);
  await db.execute(sql`
    insert into status_report (incident_id, author_id, conditions, actions, needs, created_at)
    select ${incidentId}::bigint, ${ids.alice}::bigint, ${word}, '', '', now() ${each}`);
  await db.execute(sql`
    insert into conversation (incident_id, plugin_slug, created_at) values (${incidentId}::bigint, 'channel', now())
    on conflict do nothing`);
  await db.execute(sql`
    insert into conversation_message (conversation_id, at, author_id, text)
    select c.id, now(), ${ids.alice}::bigint, ${word} from conversation c, generate_series(1, ${count}::int)
    where c.incident_id = ${incidentId}::bigint and c.plugin_slug = 'channel'`);
}

const kinds = ["document", "message", "note", "report", "task"];
const kindsFound = async (actor: Actor, q: string): Promise<string[]> =>
  (await searchAll(contextOf(client.db), actor, { q })).map(({ type }) => type).toSorted();
const setVisibility = (id: number, visibility: "Open" | "Restricted", db = client.db) =>
  db.update(incident).set({ visibility }).where(eq(incident.id, id));

test("nor does one of many records of hidden incidents, which their participants find", async () => {
  const [open, restricted] = [
    await insert(1, "filler", "Open"),
    await insert(1, "filler", "Restricted"),
  ].flat();
  await insertRecords(open!, 700, "filler");
  await insertRecords(restricted!, 10_000, "quokka");
  await insertRecords(open!, 700, "filler");
  await client.db.execute(sql`analyze`);
  const unknown = await pagesReadFor(stranger, "unheard");
  expect(await pagesReadFor(stranger, "quokka")).toBeLessThanOrEqual(2 * unknown);
  expect(await kindsFound(stranger, "quokka")).toEqual([]);

  const [one] = await insert(1, "filler", "Restricted");
  await insertRecords(one!, 1, "numbat");
  await client.db.execute(
    sql`insert into participant (incident_id, individual_id, joined_at) values (${one!}, ${ids.alice}, now())`,
  );
  expect(await kindsFound(memberOf("alice@example.com"), "numbat")).toEqual(kinds);
  expect(await kindsFound({ ...stranger, admin: true }, "numbat")).toEqual(kinds);
  expect(await kindsFound(stranger, "numbat")).toEqual([]);
}, 120_000);

test("everybody finds the records of an incident once it is Open, and no longer once it is Restricted", async () => {
  const [id] = await insert(1, "filler", "Restricted");
  await insertRecords(id!, 1, "bilby");
  await setVisibility(id!, "Open");
  expect(await kindsFound(stranger, "bilby")).toEqual(kinds);
  await setVisibility(id!, "Restricted");
  expect(await kindsFound(stranger, "bilby")).toEqual([]);
}, 120_000);

test("also those that are added while it becomes Open", async () => {
  const other = openDatabase(client.url, 1);
  try {
    const [before, after] = [
      await insert(1, "filler", "Restricted"),
      await insert(1, "filler", "Restricted"),
    ].flat();
    const { promise: changing, resolve } = Promise.withResolvers<unknown>();
    await client.db.transaction(async (tx) => {
      await insertRecords(before!, 1, "potoroo", tx as unknown as typeof client.db);
      const changed = setVisibility(before!, "Open", other.db).then(() => "changed");
      resolve(changed);
      await Promise.race([changed, waiting()]);
    });
    await changing;
    expect(await kindsFound(stranger, "potoroo")).toEqual(kinds);

    let adding: Promise<void> = Promise.resolve();
    await client.db.transaction(async (tx) => {
      await setVisibility(after!, "Open", tx as unknown as typeof client.db);
      adding = insertRecords(after!, 1, "dunnart", other.db);
      await Promise.race([adding, waiting()]);
    });
    await adding;
    expect(await kindsFound(stranger, "dunnart")).toEqual(kinds);
  } finally {
    await other.close();
  }
}, 120_000);

/** Resolves when a statement waits for the lock of another transaction. */
const waiting = () =>
  until("a statement that waits for a lock", async () => {
    const [row] = await client.db.execute(sql`
      select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`);
    return Number(row!.count) > 0;
  });
