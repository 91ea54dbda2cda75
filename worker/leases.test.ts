import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray, sql } from "drizzle-orm";
import { accessLease } from "../drizzle/schema/index.ts";
import { fakeCredential } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { type AccessWorld, expire, startAccessWorld } from "../tests/support/domain/access_world.ts";
import { until } from "../tests/support/process/until.ts";

let world: AccessWorld;
beforeAll(async () => {
  world = await startAccessWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const isGone = (name: string) =>
  until("the role to be gone", async () => {
    const rows = await world.target.sql`select 1 from pg_roles where rolname = ${name}`;
    return rows.length === 0;
  });
const ended = (id: number) =>
  until("the lease to end", async () => {
    const { state, finishedAt } = await world.leaseRow(id);
    return finishedAt && state;
  });

describe("no role survives a process that is killed", () => {
  const issued = async () => (await world.issue(world.alice, await world.makeRole())).body;

  test("after committing Issuing and before creating the role", async () => {
    const lease = await issued();
    await world.target.sql.unsafe(`drop role ${lease.name}`);
    await world.server.db
      .update(accessLease)
      .set({ state: "Issuing", issuedAt: null })
      .where(eq(accessLease.id, lease.id));
    await expire(world, lease.id);
    await using _worker = world.startWorker();
    await until("the revocation", async () => (await world.leaseRow(lease.id)).endReason === "interrupted");
    await isGone(lease.name);
  });

  test("after CREATE ROLE and before the lease is Active", async () => {
    const lease = await issued();
    await world.server.db
      .update(accessLease)
      .set({ state: "Issuing", issuedAt: null })
      .where(eq(accessLease.id, lease.id));
    await expire(world, lease.id);
    await using _worker = world.startWorker();
    await isGone(lease.name);
    // A call that is still running may create it again, so the lease ends only once no call can be running.
    expect((await world.leaseRow(lease.id)).finishedAt).toBeNull();
    await world.server.db
      .update(accessLease)
      .set({ createdAt: sql`created_at - interval '1 hour'`, dueAt: sql`now()` })
      .where(eq(accessLease.id, lease.id));
    expect(await ended(lease.id)).toBe("Failed");
  });

  // The steps of a revocation in order. Each test stops after one more step.
  const steps = (name: string) => [
    `alter role ${name} nologin`,
    `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${name}'`,
    `grant ${name} to ${world.target.broker}`,
    `reassign owned by ${name} to ${world.target.broker}; drop owned by ${name}`,
    `drop role ${name}`,
    "select 1",
  ];
  for (const done of [0, 1, 2, 3, 4, 5, 6])
    test(`after step ${done} of its revocation`, async () => {
      const lease = await issued();
      const client = world.target.open(lease.credential.fields);
      await client.unsafe("create table mine (id int); begin; lock table mine");
      for (const step of steps(lease.name).slice(0, done)) await world.target.sql.unsafe(step);
      // The dead process had claimed it, and its claim has expired.
      await world.server.db
        .update(accessLease)
        .set({ state: "Revoking", attempts: 1, leaseUntil: sql`now()`, dueAt: sql`now()` })
        .where(eq(accessLease.id, lease.id));
      await using _worker = world.startWorker();
      await isGone(lease.name);
      expect(await ended(lease.id)).toBe("Revoked");
      await client.end();
      await world.target.sql.unsafe("drop table if exists mine");
    });
});

test("a lease whose target is down stays Revoking with the error, and ends when the target is back", async () => {
  const { settings } = world.target;
  const role = await world.makeRole();
  const { body: lease } = await world.issue(world.alice, role);
  const move = async (port: unknown) => {
    const { body } = await world.admin.call("GET", `/access/roles/${role}`);
    const change = { ...body, settings: { ...body.settings, port } };
    expect((await world.admin.call("PUT", `/access/roles/${role}`, change)).http).toBe(200);
  };
  await move(9);
  await using _worker = world.startWorker();
  await world.alice.call("DELETE", `/access/leases/${lease.id}`);
  const stuck = await until("a failed attempt", async () => {
    const { body } = await world.alice.call("GET", `/access/leases/${lease.id}`);
    return body.error !== null && body;
  });
  expect(stuck).toMatchObject({ state: "Revoking", end_reason: "revoked" });
  expect(stuck.error).toContain("refused the connection");
  expect(stuck.attempts).toBeGreaterThan(0);
  expect(stuck.next_attempt_at).not.toBeNull();
  await move(settings.port);
  await isGone(lease.name);
  expect(await ended(lease.id)).toBe("Revoked");
});

test("a role expires by the target's clock, even if ours is ten minutes off", async () => {
  world.server.clock.advance(600);
  const { body: lease } = await world.issue(world.alice, await world.makeRole());
  const [row] = await world.target.sql<[{ left: number }]>`
    select extract(epoch from rolvaliduntil - now())::int as left from pg_roles where rolname = ${lease.name}`;
  expect(row.left).toBeWithin(3580, 3601);
  await using _worker = world.startWorker();
  await world.alice.call("DELETE", `/access/leases/${lease.id}`);
  await isGone(lease.name);
});

test("names with quotes, spaces and SQL are quoted", async () => {
  const { sql: superuser, settings, broker } = world.target;
  const parent = `it's "the" parent; drop table shop; --`;
  const quoted = `"${parent.replaceAll('"', '""')}"`;
  await superuser.unsafe(`create role ${quoted}; grant ${quoted} to ${broker} with admin option`);
  const role = await world.makeRole({ settings: { ...settings, parents: parent } });
  const { http, body: lease } = await world.issue(world.bob, role);
  expect(http).toBe(201);
  expect(lease.name).toMatch(/^svc_bob_[a-z0-9]{16}$/);
  await using _worker = world.startWorker();
  await world.bob.call("DELETE", `/access/leases/${lease.id}`);
  await isGone(lease.name);
  const missing = await world.makeRole({ settings: { ...settings, database: `x"; drop table shop; --` } });
  const refused = await world.issue(world.bob, missing);
  expect([refused.http, refused.body.detail]).toEqual([503, expect.stringContaining("has no such database")]);
  expect(await superuser`select count(*)::int as n from shop`).toMatchObject([{ n: 2 }]);
  await superuser.unsafe(`drop owned by ${quoted}; drop role ${quoted}`);
});

describe("many leases that expire at once", () => {
  let other: AccessWorld;
  let hung: string;
  const revoked: { role: string; name: string; at: number }[] = [];
  beforeAll(async () => {
    const credential = fakeCredential({
      issue: () => ({ kind: "token" as const, fields: {} }),
      revoke: async ({ name, role }) => {
        revoked.push({ role: role.slug, name, at: performance.now() });
        if (role.slug === hung) await new Promise(() => {});
      },
    });
    other = await startAccessWorld(pluginsOf(credential));
    hung = await makeRole();
  });
  afterAll(() => other[Symbol.asyncDispose]());

  const makeRole = () => other.makeRole({ plugin: "fake-credential", settings: {} });
  const insert = async (slug: string, count: number) => {
    const { body: role } = await other.admin.call("GET", `/access/roles/${slug}`);
    const at = new Date();
    const rows = Array.from({ length: count }, (_, index) => ({
      roleId: role.id,
      userName: "alice@example.com",
      tokenId: crypto.randomUUID(),
      name: `svc_${slug.replace("-", "_")}_${index}`,
      state: "Active" as const,
      createdAt: at,
      issuedAt: at,
      expiresAt: at,
      maxExpiresAt: at,
      dueAt: at,
    }));
    const { db } = other.server;
    return (await db.insert(accessLease).values(rows).returning({ id: accessLease.id })).map(({ id }) => id);
  };
  const allEnd = async (ids: number[]) => {
    const left = sql`${inArray(accessLease.id, ids)} and finished_at is null`;
    await until("all leases to end", async () => (await other.server.db.$count(accessLease, left)) === 0, 30);
  };

  test("1,000 leases of eight roles end, undelayed by a target that hangs", async () => {
    await insert(hung, 50);
    const ids: number[] = [];
    for (let made = 0; made < 8; made += 1) ids.push(...(await insert(await makeRole(), 125)));
    await using _worker = other.startWorker();
    await allEnd(ids);
    // Each role has its own share of a worker.
    expect(new Set(revoked.filter(({ role }) => role === hung).map(({ name }) => name)).size).toBe(8);
  });

  test("a worker revokes at most 50 leases of one role per second", async () => {
    const busy = await makeRole();
    const ids = await insert(busy, 88);
    await using _worker = other.startWorker();
    await allEnd(ids);
    const begun = revoked.filter(({ role }) => role === busy).map(({ at }) => at);
    expect(begun).toHaveLength(88);
    // Ten times 160 ms, minus the time between the first claim and its call.
    expect(begun.at(-1)! - begun[0]!).toBeGreaterThan(1400);
  });
});
