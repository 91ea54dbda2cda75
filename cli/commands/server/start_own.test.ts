import { afterAll, beforeAll, expect, test } from "bun:test";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database.ts";
import { appFolder, startServing } from "../../../tests/support/serving.ts";

const folder = appFolder();
let database: TestDatabase;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createTestDatabase();
  env = {
    ...{
      SVC_DATABASE_URL: database.url,
      SVC_OIDC_ISSUER: "http://127.0.0.1:1",
      SVC_CHALLENGE_LEGACY: "allow",
    },
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
  };
});
afterAll(async () => {
  folder[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

const start = (...args: string[]) => startServing(folder.path, args, { app: "server/main:app", env });

test.each([[], ["--workers", "2"], ["--root-path", "/svc", "--header", "x-a: 1"]])(
  "SIGTERM with %p: a held poll is answered pending, and the exit code is 0",
  async (...args) => {
    await using server = await start(...args);
    const generated = await server.fetch("/noauth/v1/challenge_generator/alice@example.com");
    const { polling_url: url } = (await generated.json()) as { polling_url: string };
    const poll = server.fetch(new URL(url).pathname, { headers: { prefer: "wait=20" } });
    // Until the poll is held there is nothing to see.
    await Bun.sleep(300);
    const began = performance.now();
    const end = server.end("SIGTERM");
    const answer = await poll;
    expect([answer.status, await answer.json()]).toEqual([200, { status: "pending" }]);
    expect((await end).code).toBe(0);
    expect(performance.now() - began).toBeLessThan(5000);
  },
);

test("--no-access-log: requests are not logged, the rest is", async () => {
  const logged = async (...args: string[]) => {
    await using server = await start(...args, "--log-level", "debug");
    expect((await server.fetch("/healthcheck")).status).toBe(200);
    return (await server.end()).stderr.includes('"msg":"request"');
  };
  expect([await logged(), await logged("--no-access-log")]).toEqual([true, false]);
});
