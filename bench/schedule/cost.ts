import { eq, sql } from "drizzle-orm";
import { formula, multipliers } from "../../core/populate/defaults.ts";
import { populate } from "../../core/populate/populate.ts";
import { type Database, openDatabase } from "../../drizzle/client.ts";
import { incident, incidentCost, participant, participantRole } from "../../drizzle/schema/index.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { costOf, type Formula } from "../../tests/support/domain/cost_formula.ts";
import { insertMany, prepareCosts } from "../../tests/support/domain/costs.ts";
import { calculateIncidentCost } from "../../worker/tasks/calculate-incident-cost.ts";
import * as support from "../support.ts";
import { contextOf, secondsOf } from "./context.ts";

const size = { incidents: 100_000, active: 1000 };
const rounds = 5;
const aim = 1;

/** Compares the whole task with a loop over single incidents. */
export async function measureCost(url: string): Promise<void> {
  const { db, close } = openDatabase(url, 2);
  const clock = new TestClock(new Date("2026-12-01T12:00:00.000Z"));
  await populate(db, clock);
  await insertMany(db, await prepareCosts(db, clock.now(), 2), size);
  const [ours, loop]: [number[], number[]] = [[], []];
  // Round 0 does not count. The clock advances before each round, so that every cost changes.
  for (let round = 0; round <= rounds; round += 1) {
    for (const [times, work] of [
      [ours, () => calculateIncidentCost.run(contextOf(db, clock))],
      [loop, () => oneByOne(db, clock.now())],
    ] as const) {
      clock.advance(3600);
      await db.execute(sql`checkpoint`);
      const seconds = await secondsOf(work);
      const wrong = size.active - (await db.$count(incidentCost, eq(incidentCost.computedAt, clock.now())));
      if (wrong !== 0) throw new support.BenchError(`${wrong} costs were not computed`);
      if (round > 0) times.push(seconds);
    }
  }
  await close();
  const [our, theirs] = [support.median(ours), support.median(loop)];
  console.log(
    `\ncosts          ${our.toFixed(2)} s of ${size.incidents.toLocaleString("en")} incidents, ${size.active.toLocaleString("en")} of them Active; median of ${rounds}`,
  );
  console.log(
    `${"".padEnd(15)}${theirs.toFixed(2)} s by a loop over the Active ones, ${(theirs / our).toFixed(0)} times as long`,
  );
  console.log(`${"".padEnd(15)}aim: under ${aim} s, ${support.verdict(our < aim)}`);
}

/** The naive implementation with the same formula: read an incident, compute, write it. */
async function oneByOne(db: Database, now: Date): Promise<void> {
  const shares = Object.fromEntries(multipliers.map(({ role, multiplier }) => [role, multiplier]));
  const rules = { ...formula, multipliers: shares } as Formula;
  const active = await db.select().from(incident).where(eq(incident.status, "Active"));
  for (const { id, cost: before, stableAt, costBasis } of active) {
    await db.transaction(async (tx) => {
      const { role, assumedAt, renouncedAt } = participantRole;
      const roles = await tx
        .select({ role, assumedAt, renouncedAt, person: participant.individualId })
        .from(participantRole)
        .innerJoin(participant, eq(participant.id, participantRole.participantId))
        .where(eq(participantRole.incidentId, id));
      const participants = new Set(roles.map(({ person }) => person)).size;
      const computed = costOf({ roles, stableAt, now, participants }, rules);
      if (computed.cost === before) return;
      await tx
        .update(incident)
        .set({ cost: computed.cost, costedBasis: costBasis })
        .where(eq(incident.id, id));
      await tx
        .insert(incidentCost)
        .values({ ...computed, incidentId: id, computedAt: now, formulaVersion: formula.version });
    });
  }
}
