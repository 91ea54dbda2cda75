import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";

const content = "# Notes\n\n- [ ] Free some @alice";

export type IncidentIds = Awaited<ReturnType<typeof insertIncident>>;

/** Inserts an incident with a row in every table that belongs to incidents. @returns their ids */
export async function insertIncident(db: Database | Transaction, at: Date) {
  const stamps = { createdAt: at, updatedAt: at };
  const add = async <T extends PgTable & { id: PgColumn }>(table: T, values: T["$inferInsert"]) => {
    const [row] = await db.insert(table).values(values).returning({ id: table.id });
    return (row as { id: number }).id;
  };
  const person = (name: string) => ({ name, email: `${name}@example.com`, ...stamps });
  const alice = await add(schema.individual, person("alice"));
  const bob = await add(schema.individual, person("bob"));
  const teamId = await add(schema.team, { name: "Storage", ...stamps });
  const onCall = { name: "Storage on call", pluginSlug: "roster", ...stamps };
  const serviceId = await add(schema.service, onCall);
  await db.insert(schema.rotation).values({ serviceId, startsAt: at, shiftHours: 168 });
  await db.insert(schema.rotationMember).values({ serviceId, position: 0, individualId: alice });

  const outage = { name: "Outage", commanderServiceId: serviceId, ...stamps };
  const incidentTypeId = await add(schema.incidentType, outage);
  const incidentPriorityId = await add(schema.incidentPriority, {
    name: "Urgent",
    reminderHours: 2,
    ...stamps,
  });
  const incidentId = await add(schema.incident, {
    title: "Disk full",
    description: "No space left",
    incidentTypeId,
    incidentPriorityId,
    reportedAt: at,
    ...stamps,
  });
  const commander = await add(schema.participant, { incidentId, individualId: alice, joinedAt: at });
  const reporter = await add(schema.participant, { incidentId, individualId: bob, joinedAt: at });
  await db.insert(schema.participantRole).values([
    { participantId: commander, incidentId, role: "commander", assumedAt: at },
    { participantId: reporter, incidentId, role: "reporter", assumedAt: at },
  ]);

  const documentId = await add(schema.document, {
    name: "Notes",
    incidentId,
    pluginSlug: "markdown",
    resourceId: "1",
    resourceType: "incident",
    ...stamps,
  });
  const hash = new Bun.CryptoHasher("sha256").update(content).digest();
  await db.insert(schema.documentContent).values({ documentId, content, hash, updatedAt: at });
  const glossary = { text: "data loss", source: "glossary", externalId: "1", ...stamps };
  const termId = await add(schema.term, glossary);
  await db.insert(schema.documentTerm).values({ documentId, termId, source: "Found" });
  await db.insert(schema.documentIncidentType).values({ documentId, incidentTypeId });
  await db.insert(schema.documentIncidentPriority).values({ documentId, incidentPriorityId });
  const taskId = await add(schema.task, {
    incidentId,
    description: "Free some",
    ownerId: alice,
    resolveBy: at,
    documentId,
    externalId: "1",
    ...stamps,
  });
  await db.insert(schema.taskAssignee).values({ taskId, individualId: bob });

  const report = { conditions: "Full", actions: "Freeing", needs: "Disks" };
  await add(schema.statusReport, { incidentId, authorId: alice, ...report, createdAt: at });
  await db.insert(schema.statusReportReminder).values({ incidentId, anchor: at, k: 1, remindedAt: at });
  const told = { actor: "alice@example.com", source: "core", kind: "incident.reported" };
  await add(schema.event, { incidentId, at, ...told, description: "Reported" });
  const channel = { incidentId, pluginSlug: "channel", createdAt: at };
  const conversationId = await add(schema.conversation, channel);
  await add(schema.conversationMessage, { conversationId, at, text: "Hello", deliveryKey: "welcome" });
  const list = { incidentId, pluginSlug: "list", name: "inc-1", createdAt: at };
  const groupId = await add(schema.participantGroup, list);
  await add(schema.participantGroupMember, {
    participantGroupId: groupId,
    individualId: alice,
    addedAt: at,
  });
  const reasons = [{ kind: "other" as const, name: "asked" }];
  await add(schema.recommendation, {
    incidentId,
    pluginSlug: "resolver",
    documentId,
    reasons,
    createdAt: at,
  });
  await db.insert(schema.flowStep).values({ incidentId, step: "reported:documents", dueAt: at });

  const review = { dailyHours: 8, reviewHours: 1, reviewHoursPerParticipant: 0.5 };
  const formula = { version: 1000, yearlyCost: 650_000, yearlyHours: 2080, ...review, createdAt: at };
  await db.insert(schema.costFormula).values(formula).onConflictDoNothing();
  const cost = { cost: 1096, seconds: 7200, reviewHours: 1.5, rate: 313 };
  await add(schema.incidentCost, { incidentId, formulaVersion: 1000, ...cost, computedAt: at });
  return {
    alice,
    bob,
    teamId,
    serviceId,
    incidentTypeId,
    incidentPriorityId,
    incidentId,
    commander,
    reporter,
    documentId,
    termId,
    taskId,
    conversationId,
    groupId,
  };
}

class Undo extends Error {}

/** Runs in a transaction with an incident, and rolls it back. */
export async function withIncidentIn(
  db: Database,
  at: Date,
  use: (tx: Transaction, ids: IncidentIds) => Promise<void>,
): Promise<void> {
  const done = db.transaction(async (tx) => {
    await use(tx, await insertIncident(tx, at));
    throw new Undo();
  });
  await done.catch((error) => {
    if (!(error instanceof Undo)) throw error;
  });
}

/** The constraint or index that rejects the query, or undefined. The transaction can continue. */
export async function refusal(tx: Transaction, query: (tx: Transaction) => PromiseLike<unknown>) {
  try {
    await tx.transaction(async (inner) => void (await query(inner)));
    return undefined;
  } catch (error) {
    const name = (error as { cause?: { constraint_name?: string } }).cause?.constraint_name;
    if (name === undefined) throw error;
    return name;
  }
}
