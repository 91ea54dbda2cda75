import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { Elysia, t } from "elysia";
import { openDatabase } from "../../drizzle/client.ts";
import { createLog } from "../../platform/log.ts";
import { createTestDatabase } from "../../tests/support/database/database.ts";
import { errorAnswer, faultOf } from "./error.ts";

test("an answer that violates its schema is a 500; neither answer nor log contains its values", async () => {
  const logged: string[] = [];
  const log = createLog("trace", { write: (line: string) => void logged.push(line) });
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

test("a request that PostgreSQL ends in a deadlock gets 503 and is asked to try again", async () => {
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
  expect(faultOf(await raise("40001"), log, "2")).toMatchObject({ status: 503, code: "unavailable" });
  expect(faultOf(await raise("40002"), log, "3")).toMatchObject({ status: 500, code: "internal" });
  const nul = await client.db.execute(sql`select ${"\0"}::text`).catch((error: unknown) => error);
  expect(faultOf(nul, log, "4")).toMatchObject({ status: 400, code: "invalid_input" });
});

test("a value of the right type that violates a limit gets an error with the limit", async () => {
  const log = createLog("trace", { write: () => undefined });
  const body = t.Object({
    text: t.Optional(t.String({ minLength: 1, maxLength: 10 })),
    none: t.Optional(t.Union([t.Null(), t.String({ maxLength: 5 })])),
    list: t.Optional(t.Array(t.String(), { maxItems: 1 })),
    count: t.Optional(t.Integer({ minimum: 1, maximum: 3 })),
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
  expect(await detailOf({ text: 5 })).toBe("The field text is missing or has the wrong type");
});
