import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { noteStatements } from "../../tests/support/database/statements.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

test("concurrent checks cause a single query", async () => {
  const statements = noteStatements(server.db);
  const asked = () => statements.filter((statement) => statement.includes("revision")).length;
  await server.fetch("/healthcheck");
  const once = asked();
  expect(once).toBeGreaterThan(0);
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => server.app.handle(new Request("http://svc.test/healthcheck"))),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(asked()).toBeLessThanOrEqual(2 * once);
});

test("a server whose connections are all in use is ready while they get answers, and not afterwards", async () => {
  await using busy = await startTestServer({ databasePoolSize: 2 });
  const health = async () => (await busy.fetch("/healthcheck")).status;
  expect(await health()).toBe(200);
  let isAnswered = true;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const users = [1, 2].map(() =>
    busy.db.transaction(async (tx) => {
      while (isAnswered) {
        await tx.execute(sql`select`);
        await Bun.sleep(100);
      }
      await released;
    }),
  );
  const took: number[] = [];
  for (let count = 0; count < 4; count += 1) {
    const began = performance.now();
    expect(await health()).toBe(200);
    took.push(performance.now() - began);
    await Bun.sleep(500);
  }
  // Without waiting for a connection for 3 s each time: some probes give up after one.
  expect(Math.min(...took)).toBeLessThan(2000);
  isAnswered = false;
  await until("the server not to be ready", async () => (await health()) === 503);
  release();
  await Promise.all(users);
  await until("the server to be ready again", async () => (await health()) === 200);
});
