import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { useDatabase } from "../../tests/support/database/database.ts";
import { refusal } from "../../tests/support/domain/incident.ts";
import { run } from "./run.ts";

const at = new Date("2026-12-01T12:00:00.000Z");
const running: typeof run.$inferInsert = {
  task: "term-sync",
  slot: at,
  owner: "a",
  startedAt: at,
  leaseUntil: at,
  state: "Running",
  trigger: "schedule",
};

const client = useDatabase(1);

test.each([
  ["state = 'Lost', lease_until = null, finished_at = now()", "run_state_known"],
  ["trigger = 'whim'", "run_trigger_known"],
  ["attempt = 0", "run_attempt"],
  ["lease_until = null", "run_lease_of_state"],
  ["state = 'Done', finished_at = now()", "run_lease_of_state"],
  ["state = 'Done', lease_until = null", "run_finished_of_state"],
  ["started_at = null", "run_started_of_state"],
  ["state = 'Missed', lease_until = null, finished_at = now()", "run_started_of_state"],
  ["state = 'Failed', lease_until = null, finished_at = now()", "run_failed_says_why"],
  ["error = 'x'", "run_failed_says_why"],
  ["state = 'Done', lease_until = null, finished_at = now()", "taken"],
  ["state = 'Missed', lease_until = null, started_at = null, finished_at = now()", "taken"],
  ["state = 'Failed', error = 'x', lease_until = null, finished_at = now()", "taken"],
])("a Running run set %s: %s", async (set, answer) => {
  await client.db.transaction(async (tx) => {
    await tx.delete(run);
    await tx.insert(run).values(running);
    const update = sql.raw(`update run set ${set}`);
    expect((await refusal(tx, (inner) => inner.execute(update))) ?? "taken").toBe(answer);
  });
});

test("a slot runs once, and a task one slot at a time; faults are deleted with their run", async () => {
  await client.db.transaction(async (tx) => {
    await tx.delete(run);
    await tx.insert(run).values(running);
    expect(await refusal(tx, (inner) => inner.insert(run).values({ ...running, task: "term-sync" }))).toBe(
      "run_pk",
    );
    const later = new Date(at.getTime() + 1);
    expect(await refusal(tx, (inner) => inner.insert(run).values({ ...running, slot: later }))).toBe(
      "run_one_running_idx",
    );
    const other = { ...running, task: "application-sync" };
    expect(await refusal(tx, (inner) => inner.insert(run).values(other))).toBeUndefined();
    await tx.execute(sql`insert into run_fault select task, slot, 'x', 'y' from run`);
    expect(
      await refusal(tx, (inner) => inner.execute(sql`insert into run_fault values ('x', now(), 'x', 'y')`)),
    ).toBe("run_fault_run_fk");
    await tx.delete(run);
    expect([...(await tx.execute(sql`select from run_fault`))]).toHaveLength(0);
  });
});
