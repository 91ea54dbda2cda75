import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { startOutbox } from "../support/domain/delivery.ts";
import { until } from "../support/process/until.ts";

const count = 60;

test("three workers killed while sending lose nothing, and duplicates have the same key", async () => {
  await using outbox = await startOutbox();
  const { db, ids } = outbox;
  await db.execute(sql`create table said (key text, pid integer)`);
  await outbox.deliver(
    pluginsOf(fakeConversation({}, { slug: "channel" })),
    ...Array.from({ length: count }, (_, i) => ({
      key: { task: "t", what: "w", whom: `${i}` },
      incidentId: ids.incidentId,
      individualId: ids.alice,
      message: { subject: "s", text: "t" },
    })),
  );
  const start = () =>
    Bun.spawn([process.execPath, `${import.meta.dir}/../support/domain/delivery_program.ts`], {
      env: { ...process.env, SVC_DATABASE_URL: outbox.url },
      stdio: ["ignore", "ignore", "inherit"],
    });
  const said = async () =>
    (await db.execute<{ key: string }>(sql`select key from said`)).map(({ key }) => key);
  const done = async () => (await outbox.all()).filter(({ state }) => state === "Done").length;
  const killAll = async (workers: ReturnType<typeof start>[]) => {
    for (const worker of workers) worker.kill("SIGKILL");
    await Promise.all(workers.map(({ exited }) => exited));
  };
  const first = [start(), start(), start()];
  await until("some to be said", async () => (await said()).length >= 5);
  await killAll(first);
  const held = (await outbox.all()).filter(({ leaseUntil }) => leaseUntil !== null).length;
  expect(held).toBeGreaterThan(0);
  // The duration of their leases.
  await db.execute(
    sql`update delivery set lease_until = now(), due_at = now() where lease_until is not null`,
  );
  const second = [start(), start(), start()];
  try {
    await until("all to be done", async () => (await done()) === count, 60);
  } finally {
    await killAll(second);
  }
  const keys = await said();
  expect(new Set(keys).size).toBe(count);
  expect(keys.length).toBeLessThanOrEqual(count + held);
}, 120_000);
