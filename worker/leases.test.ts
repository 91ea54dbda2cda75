import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray, sql } from "drizzle-orm";
import { revokeUnissued } from "../core/access/end.ts";
import { accessLease } from "../drizzle/schema/index.ts";
import { Unavailable } from "../platform/errors.ts";
import { fakeCredential } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { PageReader } from "../tests/support/browser/reader.ts";
import { type AccessWorld, startAccessWorld } from "../tests/support/domain/access_world.ts";
import { type Person, personOf } from "../tests/support/http/people.ts";
import { signInToken } from "../tests/support/http/server.ts";
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

describe("a revocation does not wait for a poll after", () => {
  const revoked: string[] = [];
  let fails = false;
  let other: AccessWorld;
  let workers: AsyncDisposableStack;
  beforeAll(async () => {
    const credential = fakeCredential({
      issue: () => ({ kind: "token" as const, fields: {} }),
      revoke: ({ name }) => {
        revoked.push(name);
        if (fails) throw new Unavailable("The target is down");
      },
    });
    other = await startAccessWorld(pluginsOf(credential));
    workers = new AsyncDisposableStack();
    for (const _ of [1, 2]) workers.use(other.startWorker(3600));
  });
  afterAll(async () => {
    await workers[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });

  const makeRole = (more: object = {}) =>
    other.makeRole({ plugin: "fake-credential", settings: {}, ...more });
  const ok = async (answer: ReturnType<Person["call"]>) => {
    const { http, body } = await answer;
    expect([http < 300, body?.detail]).toEqual([true, undefined]);
    return body;
  };
  const bobs = async (role: string, more: object = {}) => ok(other.issue(other.bob, role, more));
  /** A lease for an incident of its own, with alice as the commander. */
  const ofIncident = async () => {
    const { ids, alice, bob } = other;
    const kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
    const fields = { title: "Broken", description: "First", ...kind };
    const incident = await ok(alice.call("POST", "/incidents/", fields));
    const path = `/incidents/${incident.id}`;
    const participant = await ok(bob.call("POST", `${path}/participants/`, { email: "bob@example.com" }));
    const lease = await bobs(await makeRole(), { incident: incident.name });
    const change = async (more: object) => {
      const { version } = await ok(alice.call("GET", path));
      const now = { ...fields, status: "Active", visibility: "Open", resolution: null, version };
      await ok(alice.call("PUT", path, { ...now, ...more }));
    };
    return { lease, change, path, participant };
  };
  const approved = async () => {
    const role = await makeRole({ approval: "admin" });
    const request = await ok(other.bob.call("POST", "/access/requests/", { role, reason: "x" }));
    const path = `/access/requests/${request.id}`;
    await ok(other.admin.call("POST", `${path}/approve`));
    return { path, lease: await bobs(role, { request_id: request.id }) };
  };

  const ends: Record<string, () => Promise<{ name: string }>> = {
    "svc access revoke": async () => {
      const lease = await bobs(await makeRole());
      await ok(other.bob.call("DELETE", `/access/leases/${lease.id}`));
      return lease;
    },
    "svc logout": async () => {
      const dana = await personOf(other.server, "dana@example.com", ["oncall"]);
      const lease = await ok(other.issue(dana, await makeRole()));
      await ok(dana.call("DELETE", "/tokens/current"));
      return lease;
    },
    "a sign-in without the group": async () => {
      const { server } = other;
      const erin = await personOf(server, "erin@example.com", ["oncall"]);
      const lease = await ok(other.issue(erin, await makeRole()));
      server.clock.advance(1);
      server.issuer.claims = { email_verified: true, groups: ["other"] };
      await signInToken(server);
      return lease;
    },
    "a sign-in in a browser without the group": async () => {
      const { server } = other;
      const frank = "frank@example.com";
      const groups = (names: string[]) =>
        Object.assign(server.issuer, { user: frank, claims: { email_verified: true, groups: names } });
      groups(["oncall"]);
      const authorization = `Bearer ${await signInToken(server)}`;
      const role = await makeRole();
      const issue = () => other.admin.call("POST", "/access/leases/", { role }, { authorization });
      const lease = await ok(issue());
      await PageReader.signIn(server, frank, ["other"]);
      expect((await issue()).http).toBe(404);
      await until("the first lease to end", () => revoked.includes(lease.name));
      await PageReader.signIn(server, frank, ["oncall"]);
      expect((await issue()).http).toBe(201);
      return lease;
    },
    "the role was disabled": async () => {
      const role = await makeRole();
      const lease = await bobs(role);
      const now = await ok(other.admin.call("GET", `/access/roles/${role}`));
      await ok(other.admin.call("PUT", `/access/roles/${role}`, { ...now, disabled: true }));
      expect((await other.issue(other.bob, role)).http).toBe(404);
      return lease;
    },
    "the approval was withdrawn": async () => {
      const { path, lease } = await approved();
      await ok(other.admin.call("POST", `${path}/deny`));
      return lease;
    },
    "the approval was given up": async () => {
      const { path, lease } = await approved();
      await ok(other.bob.call("POST", `${path}/cancel`));
      return lease;
    },
    "the incident was closed": async () => {
      const { lease, change } = await ofIncident();
      await change({ status: "Closed" });
      return lease;
    },
    "the user left the incident": async () => {
      const { lease, path, participant } = await ofIncident();
      await ok(other.bob.call("POST", `${path}/participants/${participant.id}/leave`));
      return lease;
    },
    "the incident became Restricted": async () => {
      const { lease, path, participant, change } = await ofIncident();
      await ok(other.bob.call("POST", `${path}/participants/${participant.id}/leave`));
      await until("the first lease to end", () => revoked.includes(lease.name));
      const { name } = await ok(other.alice.call("GET", path));
      const last = await bobs(await makeRole(), { incident: name });
      await change({ visibility: "Restricted" });
      return last;
    },
    "the incident was deleted": async () => {
      const { lease, path } = await ofIncident();
      await ok(other.admin.call("DELETE", path));
      return lease;
    },
  };
  const reasons: Record<string, string> = {
    "svc logout": "signed_out",
    "a sign-in without the group": "group_lost",
    "a sign-in in a browser without the group": "group_lost",
    "the role was disabled": "role_disabled",
    "the approval was withdrawn": "approval_withdrawn",
    "the approval was given up": "approval_withdrawn",
    "the incident was closed": "incident_closed",
    "the user left the incident": "left_incident",
    "the incident became Restricted": "incident_hidden",
    "the incident was deleted": "incident_deleted",
  };
  for (const [what, end] of Object.entries(ends))
    test(what, async () => {
      const lease = await end();
      await until("the revocation", () => revoked.includes(lease.name));
      const row = async () =>
        (await other.server.db.select().from(accessLease).where(eq(accessLease.name, lease.name)))[0]!;
      await until("its end", async () => (await row()).state === "Revoked");
      expect((await row()).endReason).toBe(reasons[what] ?? "revoked");
      // Both workers were woken.
      expect(revoked.filter((name) => name === lease.name)).toHaveLength(1);
    });

  test("svc access revoke of a lease that is ending", async () => {
    fails = true;
    const lease = await bobs(await makeRole());
    const revoke = () => ok(other.bob.call("DELETE", `/access/leases/${lease.id}`));
    await revoke();
    await until("a failed attempt", async () => (await other.leaseRow(lease.id)).error !== null);
    fails = false;
    await revoke();
    await until("its end", async () => (await other.leaseRow(lease.id)).state === "Revoked");
  });

  test("a failed issue", async () => {
    const { server } = other;
    const lease = await bobs(await makeRole());
    await revokeUnissued(server, lease.id, { endReason: "not_issued", error: "x" });
    await until("the revocation", () => revoked.includes(lease.name));
  });

  test("the listening connection was lost", async () => {
    const { db } = other.server;
    const from = sql`from pg_stat_activity where application_name = 'svc listen' and datname = current_database()`;
    await db.execute(sql`select pg_terminate_backend(pid) ${from}`);
    const lease = await ends["svc access revoke"]!();
    await until("the revocation", () => revoked.includes(lease.name));
  });
});
