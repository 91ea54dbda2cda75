import { afterAll, beforeAll, expect, test } from "bun:test";
import { noteStatements } from "../../tests/support/database/statements.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

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
