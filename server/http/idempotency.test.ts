import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { once } from "../../core/idempotency/once.ts";
import { document, event, idempotencyKey, incident } from "../../drizzle/schema/index.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { ofAnIncident } from "../../tests/support/http/permission_requests.ts";
import { createWorld, type World } from "../../tests/support/http/permission_world.ts";
import { readPermissions } from "../../tests/support/http/permissions.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let alice: Person;
let bob: Person;
let count = 0;
let key: string;
let name: string;
beforeAll(async () => {
  // Tokens outlive the day for which a key is kept.
  server = await startTestServer({ tokenLifetime: 7 * 24 * 3600 });
  alice = await personOf(server, "alice@example.com");
  bob = await personOf(server, "bob@example.com");
});
beforeEach(() => {
  count += 1;
  key = `key-${count}`;
  name = `Name ${count}`;
});
afterAll(() => server[Symbol.asyncDispose]());

const post = (person = alice, change: object = {}, path = "/documents/") =>
  person.call("POST", path, { name, resource_type: "reference", ...change }, { "idempotency-key": key });
const made = () => server.db.select().from(document).where(eq(document.name, name));
const kept = () => server.db.select().from(idempotencyKey).where(eq(idempotencyKey.key, key));

test("a retry gets the identical answer, and nothing more happens", async () => {
  const first = await post();
  const again = await post();
  const withoutSlash = await post(alice, {}, "/documents");
  for (const answer of [again, withoutSlash]) {
    expect([answer.http, answer.body]).toEqual([201, first.body]);
    for (const header of ["location", "etag", "content-type"])
      expect(answer.headers.get(header)).toBe(first.headers.get(header));
  }
  expect(await made()).toHaveLength(1);
});

test("without a key, two requests create two records", async () => {
  await alice.call("POST", "/documents/", { name, resource_type: "reference" });
  await alice.call("POST", "/documents/", { name, resource_type: "reference" });
  expect(await made()).toHaveLength(2);
});

test("fifty concurrent requests at two servers are processed once", async () => {
  await using another = await server.another();
  const { authorization } = await headersOf();
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const response = await (i % 2 ? another : server).fetch("/documents/", {
        method: "POST",
        headers: { authorization, "content-type": "application/json", "idempotency-key": key },
        body: JSON.stringify({ name, resource_type: "reference" }),
      });
      return {
        http: response.status,
        retry: response.headers.get("retry-after"),
        body: await response.json(),
      };
    }),
  );
  const good = answers.filter(({ http }) => http === 201);
  const told = answers.filter(({ http }) => http === 409);
  expect(good.length).toBeGreaterThan(0);
  expect(good.length + told.length).toBe(50);
  expect(new Set(good.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  for (const { retry } of told) expect(retry).toBe("1");
  expect(await made()).toHaveLength(1);
  expect((await post()).body).toEqual(good[0]!.body as object);
});

const creating = readPermissions().filter(
  ({ request, cells }) =>
    request.startsWith("POST") &&
    request in ofAnIncident &&
    cells.some(({ role, visibility, answer }) => `${role} ${visibility} ${answer}` === "admin Open 201"),
);

describe("every POST that creates a record", () => {
  let world: World;
  beforeAll(async () => {
    const plugins = { pluginDocument: "markdown", pluginCredential: "postgresql-role,aws-web-identity" };
    world = await createWorld(await startTestServer(plugins));
  });
  afterAll(() => world.server[Symbol.asyncDispose]());

  test.each(creating.map(({ request }) => request))("%s takes effect once for each key", async (request) => {
    const place = await world.newPlace("Open");
    const [one] = ofAnIncident[request]!(place, world);
    const send = () => world.admin.call("POST", one!.path, one!.body, { "idempotency-key": key });
    const events = () => world.server.db.$count(event);
    const first = await send();
    expect(first.http).toBe(201);
    const before = await events();
    const again = await send();
    expect([again.http, again.body]).toEqual([201, first.body]);
    for (const header of ["location", "etag"])
      expect(again.headers.get(header)).toBe(first.headers.get(header));
    expect(await events()).toBe(before);
  });
});

test("with another body it is 422 with a distinct code, and nothing happens", async () => {
  await post();
  const answer = await post(alice, { description: "other" });
  expect(answer).toMatchObject({ http: 422, body: { code: "idempotency_key_reused" } });
  expect(await made()).toHaveLength(1);
});

test("is scoped to the actor", async () => {
  const first = await post(alice);
  const second = await post(bob);
  expect(second.http).toBe(201);
  expect(second.body.id).not.toBe(first.body.id);
  // The retries as well, with the same content.
  expect([(await post(bob)).body.id, (await post()).body.id]).toEqual([second.body.id, first.body.id]);
});

test("a failure is not stored: a retry starts over", async () => {
  const at = server.clock.now();
  expect((await post(alice, { incident_id: 4711 })).http).toBe(400);
  expect(await kept()).toEqual([]);
  const { incidentId } = await insertIncident(server.db, at);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  const bobs = () => post(bob, { incident_id: incidentId });
  const carol = await personOf(server, "carol@example.com");
  expect((await post(carol, { incident_id: incidentId })).http).toBe(400);
  expect((await bobs()).http).toBe(201);
  await server.db.update(incident).set({ visibility: "Open" }).where(eq(incident.id, incidentId));
  expect((await post(carol, { incident_id: incidentId })).http).toBe(201);
  expect(await server.db.select().from(event).where(eq(event.kind, "document.created"))).toHaveLength(2);
});

test("lasts 24 hours, and is then a new key", async () => {
  const first = await post();
  server.clock.advance(24 * 3600 - 1);
  expect((await post()).body).toEqual(first.body);
  server.clock.advance(1);
  const next = await post(alice, { description: "another request" });
  expect(next.http).toBe(201);
  expect(next.body.id).not.toBe(first.body.id);
});

test("after 24 hours it is a new key, even while many expired ones await deletion", async () => {
  const last = key;
  for (let i = 0; i < 12; i += 1) {
    key = `${last}-${i}`;
    await post();
    server.clock.advance(1);
  }
  server.clock.advance(24 * 3600);
  expect((await post(alice, { description: "another request" })).http).toBe(201);
});

test("expired keys are deleted automatically", async () => {
  await post();
  const old = key;
  server.clock.advance(24 * 3600);
  key = `${old}-later`;
  await post();
  expect(await server.db.select().from(idempotencyKey).where(eq(idempotencyKey.key, old))).toEqual([]);
});

test("statistics from when all keys were deleted do not make it look for expired keys again for each", async () => {
  const { db } = server;
  const insert = (count: number) =>
    db.execute(sql`
      insert into idempotency_key (actor, method, path, key, request_hash, state, lease_until, created_at, expires_at)
      select 'bob@example.com', 'POST', '/documents', n, '', 'Running', now(), now(), ${server.clock.now().toISOString()}::timestamptz
        + case when n % 2 = 0 then interval '-1 hour' else '1 hour' end
      from generate_series(1, ${count}::int) as n`);
  await insert(1000);
  await db.delete(idempotencyKey);
  await db.execute(sql`analyze idempotency_key`);
  await insert(2000);
  const asked = noteAsked(db);
  await post();
  expect(await db.$count(idempotencyKey)).toBe(2000 - 10 + 1);
  const [deletion] = asked.filter(({ text }) => text.startsWith("delete"));
  expect(await rowsRead(db, deletion!)).toBeLessThan(5000);
  await db.delete(idempotencyKey);
});

test.each(["", " ", "a b", "ä", "a".repeat(256)])("the key %p is refused", async (bad) => {
  key = bad;
  // fetch refuses or trims some of them; check those that arrive.
  const answer = await post().catch(() => undefined);
  if (answer && answer.http !== 201)
    expect(answer).toMatchObject({ http: 400, body: { field: "Idempotency-Key" } });
  else expect(bad).toBe("ä");
});

describe("a server that dies during the work", () => {
  /** Claims the key like a server whose work takes until released. */
  async function claimElsewhere() {
    const { promise: hang, resolve: wake } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const request = {
      actor: "alice@example.com",
      method: "POST",
      path: "/documents",
      key,
      content: JSON.stringify({ name, resource_type: "reference" }),
    };
    const context = { ...server, log: { warn: () => {} } } as never;
    const work = once(context, request, async ({ db }) => {
      begin();
      await hang;
      const at = server.clock.now();
      await db.insert(document).values({ name, resourceType: "late", createdAt: at, updatedAt: at });
      return { status: 201, headers: {}, body: "{}" };
    });
    work.catch(() => {});
    await begun;
    return { work, wake };
  }

  test("blocks others until its lease expires; a retry then takes over, and it can no longer finish", async () => {
    const { work, wake } = await claimElsewhere();
    const told = await post();
    expect(told).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect(told.headers.get("retry-after")).toBe("1");
    server.clock.advance(59);
    expect((await post()).http).toBe(409);
    expect(await post(alice, { description: "other" })).toMatchObject({ http: 422 });
    server.clock.advance(1);
    expect(await post(alice, { description: "other" })).toMatchObject({ http: 422 });
    const answer = await post();
    expect(answer.http).toBe(201);
    wake();
    expect(work).rejects.toThrow("in progress");
    await work.catch(() => {});
    expect(await made()).toMatchObject([{ resourceType: "reference" }]);
    expect((await post()).body).toEqual(answer.body);
  });

  test("that was only slow still finishes if no other took over", async () => {
    const { work, wake } = await claimElsewhere();
    server.clock.advance(3600);
    wake();
    await work;
    expect(await made()).toMatchObject([{ resourceType: "late" }]);
  });
});

async function headersOf() {
  const { signInToken } = await import("../../tests/support/http/server.ts");
  server.issuer.user = "alice@example.com";
  return { authorization: `Bearer ${await signInToken(server)}` };
}
