import { beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { openDatabase } from "../../drizzle/client.ts";
import { costFormula, costFormulaRole, incidentPriority, incidentType } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { createEmptyTestDatabase, useDatabase } from "../../tests/support/database/database.ts";
import { populate } from "./populate.ts";

const clock = new TestClock();

const client = useDatabase(3);
beforeEach(async () => {
  await client.db.execute(sql`truncate incident_type, incident_priority, cost_formula cascade`);
});

const everything = [
  ...["Availability", "Data Loss", "Security", "Vulnerability", "Simulation", "Other"].map((name) => ({
    table: "incident_type",
    name,
  })),
  ...["Info", "Low", "Medium", "High"].map((name) => ({ table: "incident_priority", name })),
  { table: "cost_formula", name: "1" },
];

test("writes the defaults, once", async () => {
  const { db } = client;
  expect(await populate(db, clock)).toEqual({ created: everything });
  expect(await populate(db, clock)).toEqual({ created: [] });
  const priorities = await db.select().from(incidentPriority).orderBy(incidentPriority.rank);
  expect(priorities.map(({ name, reminderHours }) => [name, reminderHours])).toEqual([
    ["Info", 24],
    ["Low", 12],
    ["Medium", 6],
    ["High", 2],
  ]);
  expect(priorities.map(({ reporterCommands }) => reporterCommands)).toEqual([true, false, false, false]);
  const types = await db.select().from(incidentType);
  for (const type of types) {
    expect(type).toMatchObject({ commanderServiceId: null, createdAt: clock.now(), version: 1 });
    expect(type.description).not.toBe("");
  }
  const restricted = types.filter(({ visibility }) => visibility === "Restricted").map(({ name }) => name);
  expect(restricted.sort()).toEqual(["Security", "Vulnerability"]);
  const [formula] = await db.select().from(costFormula);
  expect(formula).toMatchObject({ version: 1, yearlyCost: 650_000, yearlyHours: 2080, dailyHours: 8 });
  expect(formula).toMatchObject({ reviewHours: 1, reviewHoursPerParticipant: 0.5 });
  const roles = await db.select().from(costFormulaRole);
  expect(Object.fromEntries(roles.map(({ role, multiplier }) => [role, multiplier]))).toEqual({
    commander: 1,
    scribe: 0.75,
    liaison: 0.75,
    participant: 0.5,
    reporter: 0.5,
    observer: 0,
  });
});

test("keeps the operator's changes, and writes what is missing", async () => {
  const { db } = client;
  await populate(db, clock);
  await db.update(incidentPriority).set({ reminderHours: 1 }).where(eq(incidentPriority.name, "High"));
  await db.update(costFormula).set({ yearlyCost: 1 });
  await db.delete(costFormulaRole).where(eq(costFormulaRole.role, "scribe"));
  await db.delete(incidentType).where(eq(incidentType.name, "Simulation"));
  expect(await populate(db, clock)).toEqual({ created: [{ table: "incident_type", name: "Simulation" }] });
  const [high] = await db.select().from(incidentPriority).where(eq(incidentPriority.name, "High"));
  expect(high?.reminderHours).toBe(1);
  const [formula] = await db.select().from(costFormula);
  expect(formula?.yearlyCost).toBe(1);
  expect(await db.$count(costFormulaRole)).toBe(5);
});

test("three concurrent runs write each default once, and none fails", async () => {
  const results = await Promise.all([1, 2, 3].map(() => populate(client.db, clock)));
  const names = (created: { table: string; name: string }[]) =>
    created.map(({ table, name }) => `${table} ${name}`).sort();
  expect(names(results.flatMap(({ created }) => created))).toEqual(names(everything));
  expect(await client.db.$count(costFormulaRole)).toBe(6);
});

test("writes everything or nothing", async () => {
  const { db } = client;
  await db.execute(sql`alter table cost_formula add constraint never check (version <> 1)`);
  await expect(populate(db, clock)).rejects.toThrow();
  await db.execute(sql`alter table cost_formula drop constraint never`);
  expect(await db.$count(incidentType)).toBe(0);
});

test("an outdated schema and an unreachable database are errors that say what to do", async () => {
  await using empty = await createEmptyTestDatabase();
  const behind = openDatabase(empty.url, 1);
  const conflict = { code: "conflict", detail: "The database schema is out of date: svc database upgrade" };
  await expect(populate(behind.db)).rejects.toMatchObject(conflict);
  await behind.close();
  const away = openDatabase("postgres://svc:hunter2@127.0.0.1:1/svc", 1);
  await expect(populate(away.db)).rejects.toBeInstanceOf(Unavailable);
  await away.close();
});
