import { expect, test } from "bun:test";
import { numbers } from "../support/domain/numbers.ts";
import {
  Storm,
  stormPeriodMilliseconds,
  stormTasks,
  strayWriters,
} from "../support/domain/schedule_storm.ts";
import { effort } from "../support/effort.ts";
import { until } from "../support/process/until.ts";
import { seed } from "../support/seed.ts";

/** The number of slots of all tasks. */
const slots = effort(1000);
const seconds = (slots / stormTasks.length) * (stormPeriodMilliseconds / 1000);

interface Run {
  task: string;
  slot: Date;
  state: string;
  attempt: number;
  missed: { count: number; from: string } | null;
}

/** Follows the slots of one task from the first one: each has one run, or one later run that stands for it. */
function account(runs: readonly Run[]): { ran: number; skipped: number; gaps: string[] } {
  let next = new Date(runs[0]!.missed?.from ?? runs[0]!.slot).getTime();
  const gaps: string[] = [];
  let skipped = 0;
  for (const { task, slot, missed } of runs) {
    const from = missed ? new Date(missed.from).getTime() : slot.getTime();
    const count = (slot.getTime() - from) / stormPeriodMilliseconds;
    if (from !== next || count !== (missed?.count ?? 0))
      gaps.push(`${task}: ${new Date(next).toISOString()} expected, ${JSON.stringify({ slot, missed })}`);
    skipped += count;
    next = slot.getTime() + stormPeriodMilliseconds;
  }
  return { ran: runs.length, skipped, gaps };
}

test(
  `three workers in a storm, ${slots} slots: each is accounted for once, and none takes effect twice`,
  async () => {
    const below = numbers(seed);
    await using storm = await Storm.start(below);
    const knows = (count: number) => async () =>
      (await storm.asking((sql) => sql`select from scheduled_task`)).length === count;
    await until("all tasks to be known", knows(stormTasks.length));
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      await storm.strike();
      await Bun.sleep(below(2000));
    }
    const calm = new Date();
    const allRan = async () =>
      storm.asking(async (sql) => {
        const rows = await sql`
          select from run where state = 'Done' and slot > ${calm} group by task having count(*) > 5`;
        return rows.length === stormTasks.length;
      });
    await until("each task to run again", allRan, 60);
    const codes = await storm.calm();
    const runs = await storm.asking(
      (sql) => sql<Run[]>`
        select task, slot, state, attempt, result -> 'missed_slots' as missed from run order by task, slot`,
    );
    const accounts = stormTasks.map((name) => account(runs.filter(({ task }) => task === name)));
    const [ran, skipped] = (["ran", "skipped"] as const).map((what) =>
      accounts.reduce((sum, one) => sum + one[what], 0),
    ) as [number, number];
    const taken = runs.filter(({ attempt }) => attempt > 1).length;
    console.log(
      `storm ${seed}: ${ran} runs (${taken} taken over), which stand for ${skipped} others; ${JSON.stringify(storm.happened)}`,
    );
    expect(codes).toEqual([0, 0, 0]);
    expect(accounts.flatMap(({ gaps }) => gaps)).toEqual([]);
    expect(ran + skipped).toBeGreaterThanOrEqual(slots);
    expect(runs.filter(({ state }) => state !== "Done")).toEqual([]);
    await storm.asking(async (sql) => {
      expect(
        await sql`
        select task, slot from run full join effect using (task, slot)
        where run.state is null or effect.slot is null`,
      ).toHaveLength(0);
      expect(await strayWriters(sql)).toHaveLength(0);
      expect(
        await sql`
        select task, slot from run join written using (task, slot)
        group by task, slot, attempt having count(distinct written.owner) > attempt`,
      ).toHaveLength(0);
    });
  },
  (seconds * 3 + 120) * 1000,
);
