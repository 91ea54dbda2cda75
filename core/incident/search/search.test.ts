import { beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { openDatabase } from "../../../drizzle/client.ts";
import { incident, individual } from "../../../drizzle/schema/index.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { noteAsked, pagesRead } from "../../../tests/support/database/statements.ts";
import { insertIncident } from "../../../tests/support/domain/incident.ts";
import type { Actor, Context } from "../../context.ts";
import { listIncidents } from "../incident/list.ts";
import { searchAll } from "./search.ts";

const at = new Date("2026-12-01T12:00:00Z");
const client = useDatabase(2);
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

/** The page accesses of a search among incidents. */
async function pagesReadFor(actor: Actor, q: string): Promise<number> {
  const alone = openDatabase(client.url, 1);
  try {
    await alone.db.execute(sql`set enable_seqscan = off`);
    const asked = noteAsked(alone.db);
    await searchAll(contextOf(alone.db), actor, { q, type: "incident" });
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
