import { expect, test } from "bun:test";
import { asc, eq } from "drizzle-orm";
import { openDatabase } from "../../../drizzle/client.ts";
import { individual, individualIncidentType, participant, task } from "../../../drizzle/schema/index.ts";
import { createTestDatabase } from "../../../tests/support/database/database.ts";
import { insertIncident } from "../../../tests/support/domain/incident.ts";
import { downgrade } from "../../../drizzle/revision/downgrade.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";

test("an upgrade lists those who were entered, and not those who came about with a part in an incident", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 2);
  try {
    const at = new Date("2026-11-01T12:00:00.123Z");
    const later = new Date(at.getTime() + 1);
    const { incidentId, incidentTypeId } = await insertIncident(db, later);
    await downgrade({ url: database.url, target: "20261122T1142_settings_that_processes_agree_on" });
    const names = ["entered", "joined", "owner", "called", "entered-then-joined"];
    const rows = await db
      .insert(individual)
      .values(names.map((name) => ({ name, email: `${name}@example.com`, createdAt: at, updatedAt: at })))
      .returning({ id: individual.id });
    const [, joined, owner, called, enteredThenJoined] = rows.map(({ id }) => id);
    const joins = [
      ...[joined, called].map((individualId) => ({ individualId, joinedAt: at })),
      { individualId: enteredThenJoined, joinedAt: later },
    ];
    await db
      .insert(participant)
      .values(
        joins.map(({ individualId, joinedAt }) => ({ incidentId, individualId: individualId!, joinedAt })),
      );
    await db.insert(task).values({
      ...{ incidentId, description: "Free some", ownerId: owner!, resolveBy: later },
      ...{ createdAt: at, updatedAt: at },
    });
    await db.insert(individualIncidentType).values({ individualId: called!, incidentTypeId });
    await upgrade({ url: database.url });
    const listed = await db
      .select({ name: individual.name })
      .from(individual)
      .where(eq(individual.listed, true))
      .orderBy(asc(individual.id));
    expect(listed.map(({ name }) => name)).toEqual(["entered", "called", "entered-then-joined"]);
  } finally {
    await close();
  }
});
