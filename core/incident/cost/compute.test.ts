import { beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import fc from "fast-check";
import { openDatabase } from "../../../drizzle/client.ts";
import {
  costFormula,
  costFormulaRole,
  incident,
  incidentCost,
  participant,
} from "../../../drizzle/schema/index.ts";
import { createTestDatabase, useDatabase } from "../../../tests/support/database/database.ts";
import { noteAsked, rowsRead } from "../../../tests/support/database/statements.ts";
import { costOf, type Formula, type RoleInterval } from "../../../tests/support/domain/cost_formula.ts";
import { insertCase, prepareCosts } from "../../../tests/support/domain/costs.ts";
import { effort } from "../../../tests/support/effort.ts";
import { formula as defaults, multipliers } from "../../populate/defaults.ts";
import { populate } from "../../populate/populate.ts";
import { costChanged } from "../incident/lock.ts";
import { computeCosts, costDue, formulaInForce, lockForCost } from "./compute.ts";

const start = new Date("2026-12-01T12:00:00.000Z");
const at = (milliseconds: number) => new Date(start.getTime() + milliseconds);
const now = at(100 * 3_600_000);

const client = useDatabase(3);
let kinds: Awaited<ReturnType<typeof prepareCosts>>;
beforeAll(async () => {
  await populate(client.db, { now: () => start });
  kinds = await prepareCosts(client.db, start, 3);
});

const compute = (ids: readonly number[], when = now) =>
  client.db.transaction(async (tx) =>
    computeCosts(tx, { ids, formula: await formulaInForce(tx), now: when }),
  );
const row = async (id: number) => (await client.db.select().from(incident).where(eq(incident.id, id))).at(0)!;
const snapshots = (id: number) =>
  client.db.select().from(incidentCost).where(eq(incidentCost.incidentId, id)).orderBy(incidentCost.id);
const commander: RoleInterval = { person: 1, role: "commander", assumedAt: start, renouncedAt: null };

/** To the millisecond, or so coarse that roles begin and end together. */
const time = (min: number, max: number) =>
  fc.oneof(
    fc.integer({ min: min * 3_600_000, max: max * 3_600_000 }),
    fc.integer({ min, max: 6 }).map((hours) => hours * 3_600_000),
  );
/** Over several days. There may be only one open commander, so roles of one kind are not open twice. */
const role = fc
  .tuple(
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom(...multipliers.map((one) => one.role)),
    time(0, 90),
    time(-1, 80),
  )
  .map(([person, name, from, length]) => ({
    person,
    role: name,
    assumedAt: at(from),
    renouncedAt: at(from + length),
  }));
const cases = fc.record({
  stableAt: fc.option(fc.integer({ min: 0, max: 99 * 3_600_000 }).map(at)),
  roles: fc.array(role, { maxLength: 12 }),
  open: fc.boolean(),
});
const numbers = fc.record({
  yearlyCost: fc.integer({ min: 0, max: 2_000_000 }),
  yearlyHours: fc.integer({ min: 1, max: 3000 }),
  dailyHours: fc.constantFrom(0, 7.5, 8, 24, 6.33),
  reviewHours: fc.constantFrom(0, 1, 0.333333),
  reviewHoursPerParticipant: fc.constantFrom(0, 0.5, 0.1),
  multipliers: fc.constantFrom(Object.fromEntries(multipliers.map((one) => [one.role, one.multiplier])), {
    commander: 0.7,
    scribe: 0.7,
    participant: 0.123456,
    reporter: 3,
  }),
});

test("agrees with the pure function for any roles and formula", async () => {
  let version = 100;
  await fc.assert(
    fc.asyncProperty(fc.array(cases, { minLength: 1, maxLength: 12 }), numbers, async (all, formula) => {
      version += 1;
      const { multipliers: shares, ...rest } = formula;
      await client.db.insert(costFormula).values({ version, ...rest, createdAt: start });
      for (const [name, multiplier] of Object.entries(shares))
        await client.db
          .insert(costFormulaRole)
          .values({ formulaVersion: version, role: name as RoleInterval["role"], multiplier });
      const ids: number[] = [];
      for (const one of all) {
        const roles = one.open ? [...one.roles, { ...commander, assumedAt: at(1234) }] : one.roles;
        const id = await insertCase(client.db, kinds, { ...one, roles });
        ids.push(id);
        await compute([id]);
        const participants = new Set(roles.map(({ person }) => person)).size;
        const expected = costOf({ ...one, roles, participants, now }, formula as Formula);
        const [kept] = await snapshots(id);
        const { cost, seconds, reviewHours, rate } = kept ?? { ...expected, cost: 0 };
        expect({ cost, seconds, reviewHours, rate }).toEqual(expected);
        expect((await row(id)).cost).toBe(expected.cost);
      }
      // All at once gives the same result as one by one: nothing changes.
      expect(await compute(ids)).toBe(0);
    }),
    { numRuns: effort(15) },
  );
  await client.db.delete(incidentCost);
  await client.db.delete(costFormula).where(eq(costFormula.version, version));
  for (; version > 100; version -= 1)
    await client.db.delete(costFormula).where(eq(costFormula.version, version));
});

describe("agrees with the pure function at boundaries:", () => {
  const h = 3_600_000;
  const had = (name: RoleInterval["role"], from: number, to: number): RoleInterval => ({
    person: 1,
    role: name,
    assumedAt: at(from * h),
    renouncedAt: at(to * h),
  });
  test.each([
    ["exactly one day", [had("commander", 0, 24)], 24 * 3600],
    [
      "the longer of two roles that begin together",
      [had("participant", 0, 10), had("reporter", 0, 30)],
      7 * 3600,
    ],
    [
      "the first of two roles with equal weight",
      [had("participant", 2, 9), had("reporter", 0, 5)],
      4.5 * 3600,
    ],
  ])("%s", async (_, roles, seconds) => {
    const id = await insertCase(client.db, kinds, { stableAt: null, roles });
    await compute([id]);
    const formula = { ...defaults, multipliers: { commander: 1, participant: 0.5, reporter: 0.5 } };
    expect(costOf({ roles, participants: 1, stableAt: null, now }, formula).seconds).toBe(seconds);
    expect((await snapshots(id))[0]?.seconds).toBe(seconds);
  });

  test("every period in a role counts, of hundreds", async () => {
    const turns = Array.from({ length: 300 }, (_, i) => had("commander", i / 10, i / 10 + 0.05));
    const roles = [had("participant", 0, 10), ...turns];
    const id = await insertCase(client.db, kinds, { stableAt: null, roles });
    await compute([id]);
    const formula = { ...defaults, multipliers: { commander: 1, participant: 0.5 } };
    const { seconds } = costOf({ roles, participants: 1, stableAt: null, now }, formula);
    expect(seconds).toBe(300 * 180 + (10 * 3600 - 100 * 180) / 2);
    expect((await snapshots(id))[0]?.seconds).toBe(seconds);
  });

  test("the work per period of one person's roles does not grow with their number", async () => {
    const rowsOf = async (turns: number) => {
      const roles = Array.from({ length: turns }, (_, i) => [
        had("commander", i / 100, i / 100 + 0.006),
        had("participant", i / 100 + 0.003, i / 100 + 0.009),
      ]).flat();
      const open = { ...had("reporter", 0, 1), renouncedAt: null };
      const id = await insertCase(client.db, kinds, { stableAt: null, roles: [...roles, open] });
      const asked = noteAsked(client.db);
      await compute([id]);
      return rowsRead(
        client.db,
        asked.find(({ text }) => text.includes("incident_cost"))!,
      );
    };
    expect((await rowsOf(400)) / (await rowsOf(100))).toBeLessThan(6);
  });

  test("a person who left and came back counts once in the review", async () => {
    const id = await insertCase(client.db, kinds, { stableAt: at(h), roles: [had("commander", 0, 1)] });
    await client.db
      .update(participant)
      .set({ leftAt: at(h) })
      .where(eq(participant.incidentId, id));
    const [again] = await client.db.select().from(participant).where(eq(participant.incidentId, id));
    const { individualId, joinedAt } = again!;
    await client.db.insert(participant).values({ incidentId: id, individualId, joinedAt });
    await compute([id]);
    expect(await snapshots(id)).toMatchObject([{ seconds: 3600, reviewHours: 1.5 }]);
  });
});

describe("an incident", () => {
  test("is due while Active, and once more after each change", async () => {
    const active = await insertCase(client.db, kinds, { stableAt: null, roles: [commander] });
    const stable = await insertCase(client.db, kinds, { stableAt: at(7_200_000), roles: [commander] });
    const due = () => costDue(client.db, active - 1, 10);
    expect(await due()).toEqual([active, stable]);
    await compute([active, stable]);
    expect(await due()).toEqual([active]);
    await client.db.transaction((tx) => costChanged(tx, stable));
    expect(await due()).toEqual([active, stable]);
    expect((await row(stable)).cost).toBe(1096);
  });

  test("that is locked is skipped and reported", async () => {
    const id = await insertCase(client.db, kinds, { stableAt: at(7_200_000), roles: [commander] });
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    const other = client.db.transaction(async (tx) => {
      await costChanged(tx, id);
      hold();
      await changed;
    });
    await held;
    const gone = 1_000_000;
    const lock = () => client.db.transaction((tx) => lockForCost(tx, [id, gone]));
    expect(await lock()).toEqual({ ids: [], locked: [id] });
    change();
    await other;
    expect(await lock()).toEqual({ ids: [id], locked: [] });
  });

  test("keeps a snapshot with its inputs when its cost changes, and keeps its version", async () => {
    const id = await insertCase(client.db, kinds, { stableAt: null, roles: [commander] });
    expect(await compute([id], at(7_200_000))).toBe(1);
    expect(await compute([id], at(7_200_000))).toBe(0);
    expect(await compute([id], at(30 * 3_600_000))).toBe(1);
    const came = (await snapshots(id)).map(({ cost, seconds, rate, formulaVersion, computedAt }) => ({
      cost,
      seconds,
      rate,
      formulaVersion,
      computedAt,
    }));
    expect(came).toEqual([
      { cost: 626, seconds: 7200, rate: 313, formulaVersion: 1, computedAt: at(7_200_000) },
      { cost: 4382, seconds: 50_400, rate: 313, formulaVersion: 1, computedAt: at(30 * 3_600_000) },
    ]);
    expect(await row(id)).toMatchObject({ cost: 4382, version: 1, updatedAt: start, costedBasis: 1 });
  });
});

test("without a formula the error says what to do", async () => {
  await using empty = await createTestDatabase();
  const { db, close } = openDatabase(empty.url, 1);
  const asked = db.transaction((tx) => formulaInForce(tx));
  await expect(asked).rejects.toThrow("There is no cost formula: svc database populate");
  await close();
});
