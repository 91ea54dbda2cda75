import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { sql } from "drizzle-orm";
import { Elysia, t } from "elysia";
import { openDatabase } from "../../drizzle/client.ts";
import { createLog } from "../../platform/log.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { recordingLog } from "../../tests/support/log.ts";
import { errorAnswer, faultOf } from "./error.ts";
import { closed, instant, oneOf } from "./schema.ts";

test("an answer that violates its schema is a 500; neither answer nor log contains its values", async () => {
  const { log, logged } = recordingLog();
  const app = new Elysia()
    .onError(({ error, path, set }) => {
      const answer = errorAnswer(error, path, "1", log);
      set.status = answer.status;
      return answer instanceof Response ? answer : answer.body;
    })
    .get("/noauth/broken", () => ({ status: 42, encoded_jwt: "a secret" }) as never, {
      response: { 200: t.Object({ status: t.String(), encoded_jwt: t.String() }) },
    });
  const response = await app.handle(new Request("http://svc.test/noauth/broken"));
  expect(response.status).toBe(500);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ status: "internal", code: "internal" });
  expect(logged).toHaveLength(1);
  expect(text + logged.join("")).not.toContain("a secret");
});

test("a request that PostgreSQL ends in a deadlock or by a time limit gets 503 and is asked to try again", async () => {
  await using database = await createTestDatabase();
  const client = openDatabase(database.url, 2);
  await using _closed = { [Symbol.asyncDispose]: client.close };
  const log = createLog("trace", { write: () => undefined });
  const both = Promise.withResolvers<void>();
  let holding = 0;
  const lockBoth = (first: number, second: number) =>
    client.db.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(${first}::bigint)`);
      if (++holding === 2) both.resolve();
      await both.promise;
      await tx.execute(sql`select pg_advisory_xact_lock(${second}::bigint)`);
    });
  const outcomes = await Promise.allSettled([lockBoth(1, 2), lockBoth(2, 1)]);
  const [ended] = outcomes.filter((outcome) => outcome.status === "rejected");
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(faultOf(ended?.reason, log, "1")).toMatchObject({ status: 503, code: "unavailable" });
  const raise = (state: string) =>
    client.db
      .execute(sql.raw(`do $$ begin raise sqlstate '${state}'; end $$`))
      .catch((error: unknown) => error);
  // A conflict, a lock timeout, a cancelled statement, and connections that PostgreSQL closes by its settings.
  for (const state of ["40001", "55P03", "57014", "25P03", "25P04", "57P05"])
    expect([state, faultOf(await raise(state), log, "2")]).toMatchObject([
      state,
      { status: 503, code: "unavailable", headers: { connection: "close" } },
    ]);
  expect(faultOf(await raise("40002"), log, "3")).toMatchObject({ status: 500, code: "internal" });
  const nul = await client.db.execute(sql`select ${"\0"}::text`).catch((error: unknown) => error);
  expect(faultOf(nul, log, "4")).toMatchObject({ status: 400, code: "invalid_input" });
});

test("an invalid value gets an error that names the field and says what it must be", async () => {
  const log = createLog("trace", { write: () => undefined });
  const body = t.Object({
    text: t.Optional(t.String({ minLength: 1, maxLength: 10 })),
    none: t.Optional(t.Union([t.Null(), t.String({ maxLength: 5 })])),
    list: t.Optional(t.Array(t.String(), { maxItems: 1 })),
    count: t.Optional(Type.Integer({ minimum: 1, maximum: 3 })),
    state: t.Optional(t.Union([oneOf(["Open", "Done"]), t.Null()])),
    shift: t.Optional(t.Union([t.Object({ hours: Type.Integer({ minimum: 1 }) }, closed), t.Null()])),
    page: t.Optional(t.String({ pattern: "^[1-9]$", description: "1 to 9" })),
    id: Type.Optional(Type.String({ pattern: "^[1-9]$" })),
    sure: t.Optional(Type.Boolean()),
    at: t.Optional(instant),
    needed: t.Optional(t.Object({ name: t.String() })),
  });
  const app = new Elysia()
    .onError(({ error, path, set }) => {
      const answer = errorAnswer(error, path, "1", log);
      set.status = answer.status;
      return answer instanceof Response ? answer : answer.body;
    })
    .post("/", () => "ok", { body });
  const detailOf = async (value: unknown) => {
    const init = {
      method: "POST",
      body: JSON.stringify(value),
      headers: { "content-type": "application/json" },
    };
    const answer = await app.handle(new Request("http://svc.test/", init));
    return ((await answer.json()) as { detail: string }).detail;
  };
  expect(await detailOf({ text: "a".repeat(11) })).toBe("The field text is too long: at most 10 characters");
  expect(await detailOf({ none: "a".repeat(6) })).toBe("The field none is too long: at most 5 characters");
  expect(await detailOf({ text: "" })).toBe("The field text is empty");
  expect(await detailOf({ list: ["a", "b"] })).toBe("The field list has too many entries: at most 1");
  expect(await detailOf({ count: 4 })).toBe("The field count is too large: at most 3");
  expect(await detailOf({ count: 0 })).toBe("The field count is too small: at least 1");
  expect(await detailOf({ page: "x" })).toBe("The field page has the wrong format: 1 to 9");
  expect(await detailOf({ id: "x" })).toBe("The field id has the wrong format");
  expect(await detailOf({ needed: {} })).toBe("The field needed.name is missing");
  expect(await detailOf({ text: 5 })).toBe("The field text must be a string");
  expect(await detailOf({ count: "1" })).toBe("The field count must be an integer");
  expect(await detailOf({ sure: "yes" })).toBe("The field sure must be true or false");
  expect(await detailOf({ list: "a" })).toBe("The field list must be an array");
  expect(await detailOf({ list: [1] })).toBe("The field list.0 must be a string");
  expect(await detailOf({ none: 5 })).toBe("The field none must be null or a string");
  expect(await detailOf({ state: "open" })).toBe("The field state must be one of Open, Done, null");
  expect(await detailOf({ shift: 5 })).toBe("The field shift must be an object or null");
  expect(await detailOf({ shift: { hours: 0 } })).toBe("The field shift.hours is too small: at least 1");
  expect(await detailOf({ at: "noon" })).toBe("The field at must be a time such as 2026-11-20T12:00:00Z");
});
