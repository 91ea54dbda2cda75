import { expect, test } from "bun:test";
import { numbers } from "../support/domain/numbers.ts";
import { countReminders, remindersDue } from "../support/domain/reminder_storm.ts";
import { Storm, strayWriters } from "../support/domain/schedule_storm.ts";
import { effort } from "../support/effort.ts";
import { until } from "../support/process/until.ts";
import { seed } from "../support/seed.ts";

const wanted = { reports: effort(1000), tasks: effort(1000), people: effort(100), seconds: effort(10) };

test("three workers in a storm enqueue each due reminder once", async () => {
  const below = numbers(seed);
  await using storm = await Storm.start(below, remindersDue(wanted));
  const end = performance.now() + wanted.seconds * 1000;
  while (performance.now() < end) {
    await storm.strike();
    await Bun.sleep(below(1000));
    if (below(2) === 0) await storm.freezeRunner();
  }
  const due = async () => {
    const { reports, tasks } = await storm.asking(countReminders);
    return !reports[0] && !tasks[0];
  };
  await until("the last reminder", due, 300);
  expect(await storm.calm()).toEqual([0, 0, 0]);
  await storm.asking(async (sql) => {
    const [row] = await sql<{ runs: number; taken: number }[]>`
      select count(*)::int as runs, (count(*) filter (where attempt > 1))::int as taken from run`;
    console.log(
      `storm ${seed}: ${row?.runs} runs (${row?.taken} taken over); ${JSON.stringify(storm.happened)}`,
    );
    expect(await countReminders(sql)).toEqual({ reports: { 1: wanted.reports }, tasks: { 1: wanted.tasks } });
    // Each has its record, and there are no others.
    // Nobody sends them, so a person's later reminder of tasks replaces the earlier one.
    expect(await sql`select key from delivery where state not in ('Queued', 'Obsolete')`).toHaveLength(0);
    expect(
      await sql`select topic from delivery where state = 'Queued' group by 1 having count(*) > 1`,
    ).toHaveLength(0);
    const reminders = await sql`
      select i.id, (select count(*)::int from status_report_reminder where incident_id = i.id) as noted
      from incident i`;
    expect(reminders.filter(({ noted }) => noted !== 1)).toEqual([]);
    expect(await sql`select id from task where last_reminder_at is null`).toHaveLength(0);
    expect(await strayWriters(sql)).toHaveLength(0);
  });
}, 420_000);
