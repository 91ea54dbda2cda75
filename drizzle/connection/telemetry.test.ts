import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { attributeOf, startCollector } from "../../tests/support/collector.ts";
import { createTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { valuesOf } from "../../tests/support/http/exposition.ts";
import { until } from "../../tests/support/process/until.ts";
import { startTestTelemetry } from "../../tests/support/telemetry.ts";
import { openDatabase } from "../client.ts";
import { team } from "../schema/index.ts";
import { watchPools } from "./telemetry.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

test("reports connections in use and pending requests, and both return to zero", async () => {
  await using started = await startTestTelemetry();
  const { db, close } = openDatabase(database.url, 2, watchPools(started.telemetry)("tested", 2));
  const state = async () => {
    const families = await started.scrape();
    const labels = { db_client_connection_pool_name: "tested" };
    return ["used", "pending_requests", "max"].map(
      (name) => valuesOf(families, `db_client_connection_${name}`, labels)[0],
    );
  };
  expect(await state()).toEqual([0, 0, 2]);
  const released = Promise.withResolvers<void>();
  let begun = 0;
  const transactions = [1, 2, 3].map(() =>
    db.transaction(async (tx) => {
      begun += 1;
      await tx.execute(sql`select 1`);
      await released.promise;
      throw new Error("rolled back");
    }),
  );
  const ends = Promise.allSettled(transactions);
  await until("two have a connection", () => begun === 2);
  expect(await state()).toEqual([2, 1, 2]);
  released.resolve();
  await ends;
  const failed = await db.execute(sql`select no_such_thing`).then(
    () => false,
    () => true,
  );
  expect(failed).toBe(true);
  await db.select().from(team);
  expect(await state()).toEqual([0, 0, 2]);
  await close();
});

test("a pool opened again under the same name starts from zero", async () => {
  await using started = await startTestTelemetry();
  const open = watchPools(started.telemetry);
  open("tested", 2).wanted?.();
  open("tested", 2);
  expect(valuesOf(await started.scrape(), "db_client_connection_used")).toEqual([0]);
});

test("long statements are truncated", async () => {
  using collector = startCollector();
  await using started = await startTestTelemetry({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  });
  const { db, close } = openDatabase(database.url, 1, watchPools(started.telemetry)("tested", 1));
  const now = new Date();
  const rows = Array.from({ length: 500 }, (_, n) => ({ name: `team ${n}`, createdAt: now, updatedAt: now }));
  await started.telemetry.tracing?.within({ name: "work" }, async () => {
    await db.insert(team).values(rows);
  });
  await close();
  await started.telemetry.stop();
  const statement = collector.spans().find(({ name }) => name === "INSERT")!;
  expect(String(attributeOf(statement, "db.query.text"))).toHaveLength(2000);
});

test("statements are reported without values, also in transactions and savepoints", async () => {
  using collector = startCollector();
  await using started = await startTestTelemetry({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  });
  const { tracing } = started.telemetry;
  const { db, close } = openDatabase(database.url, 2, watchPools(started.telemetry)("tested", 2));
  const now = new Date();
  // Outside a span, so not reported.
  await db.select().from(team);
  await tracing?.within({ name: "work" }, async () => {
    await db.transaction(async (tx) => {
      await tx.insert(team).values({ name: "a-value-of-ours", createdAt: now, updatedAt: now });
      await tx.transaction(async (inner) => {
        await inner.select().from(team);
      });
    });
    await db.execute(sql`select no_such_thing`).catch(() => {});
  });
  await close();
  await started.telemetry.stop();
  const spans = collector.spans();
  const work = spans.find(({ name }) => name === "work")!;
  const statements = spans.filter(({ parentSpanId }) => parentSpanId === work.spanId);
  expect(statements.map(({ name, status }) => [name, status.code])).toEqual([
    ["BEGIN", 0],
    ["INSERT", 0],
    ["SELECT", 0],
    ["SELECT", 2],
  ]);
  expect(String(attributeOf(statements[1]!, "db.query.text"))).toContain('insert into "team"');
  expect(JSON.stringify(collector.received)).not.toContain("a-value-of-ours");
  expect(spans).toHaveLength(5);
});
