import { eq } from "drizzle-orm";
import { incident, participant, task } from "../../../drizzle/schema/index.ts";
import { insertIncident } from "../domain/incident.ts";
import { type Person, personOf } from "./people.ts";
import type { TestServer } from "./server.ts";

export type Place = "Open" | "Restricted";
export const places: readonly Place[] = ["Open", "Restricted"];

/**
 * Inserts an Open incident without participants, and a Restricted one: `participant` takes part in it, `former` has left it,
 * and `member` never took part.
 */
export async function insertTwoIncidents(server: TestServer) {
  const at = server.clock.now();
  const ids = await insertIncident(server.db, at);
  const { incidentId, bob, incidentTypeId, incidentPriorityId } = ids;
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  await server.db.update(participant).set({ leftAt: at }).where(eq(participant.individualId, bob));
  const [open] = await server.db
    .insert(incident)
    .values({
      title: "Slow",
      description: "",
      incidentTypeId,
      incidentPriorityId,
      reportedAt: at,
      createdAt: at,
      updatedAt: at,
    })
    .returning({ id: incident.id });
  const incidents: Record<Place, number> = { Open: open!.id, Restricted: incidentId };
  const people: Record<string, Person> = {
    anonymous: await personOf(server),
    member: await personOf(server, "carol@example.com", ["oncall"]),
    former: await personOf(server, "bob@example.com"),
    participant: await personOf(server, "alice@example.com"),
    admin: await personOf(server, "root@example.com", ["admin"]),
  };
  return { ids, incidents, people };
}

export async function insertTask(
  { db, clock }: TestServer,
  values: Partial<typeof task.$inferInsert> & { incidentId: number },
): Promise<number> {
  const at = clock.now();
  const stamps = { resolveBy: at, createdAt: at, updatedAt: at };
  const [row] = await db
    .insert(task)
    .values({ description: "Free some disk", ...stamps, ...values })
    .returning({ id: task.id });
  return row!.id;
}
