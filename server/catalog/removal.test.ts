import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { asc, eq, inArray } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { lockSource } from "../../core/catalog/source.ts";
import { keepTasks } from "../../core/sync/document_tasks.ts";
import * as schema from "../../drizzle/schema/index.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let ids: IncidentIds;
let n = 0;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  ids = await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

const newIndividual = () => {
  const name = `leaver-${++n}`;
  return insertRow(server.db, schema.individual, { name, email: `${name}@example.com` });
};

describe("an individual", () => {
  type Task = Partial<typeof schema.task.$inferInsert>;
  const at = () => server.clock.now();
  /** A task of the document; a tombstone unless `deletedAt` is null. */
  const newTask = async (assignees: number[], more: Task = {}) => {
    const { incidentId, documentId } = ids;
    const taskId = await insertRow(server.db, schema.task, {
      incidentId,
      documentId,
      externalId: `line ${++n}`,
      description: "Free some",
      resolveBy: at(),
      deletedAt: at(),
      ...more,
    });
    for (const individualId of assignees)
      await server.db.insert(schema.taskAssignee).values({ taskId, individualId });
    return taskId;
  };
  const remove = (id: number) => admin.call("DELETE", `/individuals/${id}`);

  test("named by tombstones of tasks only is deleted, and the tombstones stay", async () => {
    const id = await newIndividual();
    const tombstones = [
      await newTask([], { creatorId: id, ownerId: ids.bob }),
      await newTask([], { ownerId: id, creatorId: ids.bob }),
      await newTask([id, ids.bob]),
    ];
    expect((await remove(id)).http).toBe(204);
    const rows = await server.db
      .select({ id: schema.task.id, creator: schema.task.creatorId, owner: schema.task.ownerId })
      .from(schema.task)
      .where(inArray(schema.task.id, tombstones))
      .orderBy(asc(schema.task.id));
    expect(rows).toEqual([
      { id: tombstones[0]!, creator: null, owner: ids.bob },
      { id: tombstones[1]!, creator: ids.bob, owner: null },
      { id: tombstones[2]!, creator: null, owner: null },
    ]);
    const assigned = schema.taskAssignee;
    expect(await server.db.select().from(assigned).where(eq(assigned.taskId, tombstones[2]!))).toEqual([
      { taskId: tombstones[2]!, individualId: ids.bob },
    ]);
  });

  test.each([
    ["creates", (id: number) => newTask([], { creatorId: id, deletedAt: null }), "a task"],
    ["owns", (id: number) => newTask([], { ownerId: id, deletedAt: null }), "a task"],
    ["is assigned", (id: number) => newTask([id], { deletedAt: null }), "a task's assignees"],
  ])("who %s an existing task cannot be deleted, and stays in tombstones", async (_, name, what) => {
    const id = await newIndividual();
    const tombstone = await newTask([id], { creatorId: id, ownerId: id });
    await name(id);
    expect(await remove(id)).toMatchObject({
      http: 409,
      body: { detail: `This individual is referred to by ${what}` },
    });
    const [row] = await server.db.select().from(schema.task).where(eq(schema.task.id, tombstone));
    expect(row).toMatchObject({ creatorId: id, ownerId: id });
  });

  test("removed from a tombstone is named again when the task returns to its document", async () => {
    const id = await newIndividual();
    const tombstone = await newTask([id], { ownerId: id });
    const [{ email } = { email: "" }] = await server.db
      .select({ email: schema.individual.email })
      .from(schema.individual)
      .where(eq(schema.individual.id, id));
    expect((await remove(id)).http).toBe(204);
    const [row] = await server.db.select().from(schema.task).where(eq(schema.task.id, tombstone));
    const found = {
      externalId: row!.externalId!,
      description: "Free some",
      status: "Open" as const,
      deleted: false,
      creator: null,
      owner: email,
      assignees: [email],
      resolveBy: null,
    };
    const place = {
      id: ids.documentId,
      incidentId: ids.incidentId,
      name: "Notes",
      resourceType: "incident",
      pluginSlug: "markdown",
      resourceId: "1",
      weblink: null,
      taskCursor: null,
    };
    await server.db.transaction((tx) =>
      keepTasks(tx, place, { found: [found], cursor: "2", clock: server.clock }),
    );
    expect((await admin.call("GET", `/tasks/${tombstone}`)).body).toMatchObject({
      owner: { email },
      assignees: [{ email }],
    });
  });

  test("named by a tombstone that is returning concurrently stays, without a deadlock", async () => {
    const id = await newIndividual();
    const tombstone = await newTask([], { ownerId: id });
    let answer: ReturnType<typeof remove> | undefined;
    await server.db.transaction(async (tx) => {
      const theTask = eq(schema.task.id, tombstone);
      await tx.select().from(schema.task).where(theTask).for("no key update");
      answer = remove(id);
      await somebodyWaits(server.db);
      await tx.update(schema.task).set({ deletedAt: null }).where(theTask);
      await tx.insert(schema.taskAssignee).values({ taskId: tombstone, individualId: id });
    });
    expect(await answer).toMatchObject({ http: 409, body: { detail: expect.stringContaining("a task") } });
  });

  test("is removed from mailing lists that are no longer managed", async () => {
    const id = await newIndividual();
    await listed({ individualId: id });
    expect((await remove(id)).http).toBe(204);
    expect(await listedIn(schema.participantGroupMember.individualId, id)).toEqual([]);
  });

  test("who participates in an incident cannot be deleted, and stays on the list", async () => {
    const id = await newIndividual();
    await server.db.insert(schema.participant).values({
      incidentId: ids.incidentId,
      individualId: id,
      joinedAt: at(),
    });
    await listed({ individualId: id });
    expect(await remove(id)).toMatchObject({
      http: 409,
      body: { detail: "This individual is referred to by a participant" },
    });
    expect(await listedIn(schema.participantGroupMember.individualId, id)).toHaveLength(1);
  });
});

const listed = (who: { individualId?: number; teamId?: number }) =>
  server.db
    .insert(schema.participantGroupMember)
    .values({ participantGroupId: ids.groupId, addedAt: server.clock.now(), ...who });
const listedIn = (column: PgColumn, id: number) =>
  server.db.select().from(schema.participantGroupMember).where(eq(column, id));

test("a team is deleted with its entries in mailing lists, and no others", async () => {
  const id = await insertRow(server.db, schema.team, { name: `Team ${++n}` });
  await listed({ teamId: id });
  expect((await admin.call("DELETE", `/teams/${id}`)).http).toBe(204);
  expect(await listedIn(schema.participantGroupMember.teamId, id)).toEqual([]);
  expect(await listedIn(schema.participantGroupMember.individualId, ids.alice)).toHaveLength(1);
});

describe("a term of a source", () => {
  const source = "glossary";
  const of = (text: string) => ({ text, source, externalId: `${text} ${++n}` });
  const defined = async (definitionId: number, ...termIds: number[]) => {
    const pairs = termIds.map((termId) => ({ definitionId, termId }));
    await server.db.insert(schema.definitionTerm).values(pairs);
    return definitionId;
  };
  const newTerm = () => insertRow(server.db, schema.term, of("leak"));
  const remove = (id: number) => admin.call("DELETE", `/terms/${id}`);
  const termsOf = async (id: number) => (await admin.call("GET", `/definitions/${id}`)).body.term_ids;

  test("is deleted with its source's definitions; definitions of other terms stay", async () => {
    const [id, other] = [await newTerm(), await newTerm()];
    const alone = await defined(await insertRow(server.db, schema.definition, of("means")), id);
    const shared = await defined(await insertRow(server.db, schema.definition, of("means")), id, other);
    expect((await remove(id)).http).toBe(204);
    expect((await admin.call("GET", `/definitions/${alone}`)).http).toBe(404);
    expect(await termsOf(shared)).toEqual([other]);
    const told = await server.db.select().from(schema.auditLog).orderBy(asc(schema.auditLog.id));
    const by = { actor: "root@example.com", address: "127.0.0.1", at: server.clock.now() };
    expect(told.slice(-2)).toMatchObject([
      { action: "definition.deleted", subject: String(alone), ...by },
      { action: "term.deleted", subject: String(id), ...by },
    ]);
  });

  test("with a user's definition is not deleted, and nothing changes", async () => {
    const id = await newTerm();
    const its = await defined(await insertRow(server.db, schema.definition, of("means")), id);
    await defined(await insertRow(server.db, schema.definition, { text: "ours" }), id);
    expect(await remove(id)).toMatchObject({
      http: 409,
      body: { detail: "This term is referred to by a definition" },
    });
    expect(await termsOf(its)).toEqual([id]);
  });

  test("waits for a concurrent sync of its source, without a deadlock", async () => {
    const id = await newTerm();
    const its = await defined(await insertRow(server.db, schema.definition, of("means")), id);
    let answer: ReturnType<typeof remove> | undefined;
    await server.db.transaction(async (tx) => {
      await lockSource(tx, source);
      answer = remove(id);
      await somebodyWaits(server.db);
      // In the order of term-sync: terms, definitions, then their links.
      await tx.update(schema.term).set({ text: "spill" }).where(eq(schema.term.id, id));
      await tx.update(schema.definition).set({ text: "other" }).where(eq(schema.definition.id, its));
      await tx.delete(schema.definitionTerm).where(eq(schema.definitionTerm.termId, id));
      await tx.insert(schema.definitionTerm).values({ definitionId: its, termId: id });
    });
    expect((await answer)?.http).toBe(204);
  });

  test("deleted concurrently with one of its definitions causes no deadlock", async () => {
    const id = await newTerm();
    const its = await defined(await insertRow(server.db, schema.definition, of("means")), id);
    let answer: ReturnType<typeof remove> | undefined;
    await server.db.transaction(async (tx) => {
      const theDefinition = eq(schema.definition.id, its);
      await tx.select().from(schema.definition).where(theDefinition).for("update");
      answer = remove(id);
      await somebodyWaits(server.db);
      await tx.delete(schema.definition).where(theDefinition);
    });
    expect((await answer)?.http).toBe(204);
  });

  test("deleted while it is added to a document causes no deadlock", async () => {
    const id = await newTerm();
    const ours = eq(schema.documentTerm.termId, id);
    await server.db
      .insert(schema.documentTerm)
      .values({ documentId: ids.documentId, termId: id, source: "Found" });
    let answer: ReturnType<typeof remove> | undefined;
    await server.db.transaction(async (tx) => {
      await tx.select().from(schema.term).where(eq(schema.term.id, id)).for("key share");
      answer = remove(id);
      await somebodyWaits(server.db);
      await tx.update(schema.documentTerm).set({ source: "Given" }).where(ours);
    });
    expect(await answer).toMatchObject({
      http: 409,
      body: { detail: "This term is referred to by a document's terms" },
    });
    expect(await server.db.select().from(schema.documentTerm).where(ours)).toHaveLength(1);
  });
});
