import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { accessLease, incident } from "../../drizzle/schema/index.ts";
import { type AccessWorld, startAccessWorld } from "../../tests/support/domain/access_world.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import type { TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

let world: AccessWorld;
let worker: AsyncDisposable;
let server: TestServer;
let alice: Person;
let bob: Person;

beforeAll(async () => {
  world = await startAccessWorld();
  ({ server, alice, bob } = world);
  worker = world.startWorker();
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const isGone = (lease: { name: string }) =>
  until("the role to be gone", async () => !(await world.target.leases()).includes(lease.name));

test("a credential has its parent's rights, and revoking it removes its sessions and tables", async () => {
  const role = await world.makeRole();
  const { http, body: lease } = await world.issue(alice, role);
  expect([http, lease]).toMatchObject([
    201,
    { role, user: "alice@example.com", state: "Active", credential: { kind: "database" } },
  ]);
  const client = world.target.open(lease.credential.fields);
  expect(await client`select count(*)::int as n from shop`).toMatchObject([{ n: 2 }]);
  await client`create table mine (id int)`;
  expect(client`delete from shop`).rejects.toThrow("permission denied");
  const { body: revoked } = await alice.call("DELETE", `/access/leases/${lease.id}`);
  expect(revoked.state).toBe("Revoking");
  await isGone(lease);
  expect(client`select 1`).rejects.toThrow();
  await client.end();
  await until(
    "the lease to be Revoked",
    async () => (await alice.call("GET", `/access/leases/${lease.id}`)).body.state === "Revoked",
  );
  const log = (
    await server.db.execute(
      sql`select action from audit_log where subject = ${`lease/${lease.id}`} order by id`,
    )
  ).map(({ action }) => action);
  expect(log).toEqual(["access.issued", "access.ending", "access.revoked"]);
});

test("an incident that cannot be a name is refused", async () => {
  const role = await world.makeRole();
  for (const incident of ["\0", "", "INC-0", "INC-7 "]) {
    const filter = `?${new URLSearchParams({ incident })}`;
    const answers = [
      await alice.call("GET", `/access/leases${filter}`),
      await alice.call("DELETE", `/access/leases${filter}`),
      await alice.call("POST", "/access/leases", { role, incident }),
      await alice.call("POST", "/access/requests", { role, incident, reason: "x" }),
    ];
    expect(answers.map(({ http }) => http)).toEqual([400, 400, 400, 400]);
  }
});

test("the secrets of a credential and of its role are in no database row or log line", async () => {
  const { body: lease } = await world.issue(alice, await world.makeRole());
  const { password } = lease.credential.fields;
  const tables = await server.db.execute<{ name: string }>(
    sql`select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  for (const { name } of tables) {
    const found = await server.db.execute(
      sql`select 1 from ${sql.raw(name)} t where position(${password} in t::text) > 0 or position(${world.target.settings.password!} in t::text) > 0`,
    );
    expect([name, found.length]).toEqual([name, 0]);
  }
  expect(server.logged.join("")).not.toContain(password);
});

describe("a lease ends", () => {
  const leaseOf = async (more: Record<string, unknown> = {}, role?: string) => {
    const { http, body } = await world.issue(bob, role ?? (await world.makeRole()), more);
    expect([http, body.detail]).toEqual([201, undefined]);
    return body as { id: number; name: string };
  };
  const reasonOf = async ({ id }: { id: number }) =>
    (await server.db.select().from(accessLease).where(eq(accessLease.id, id)))[0]!.endReason;

  test("when it expires because its client, which was killed, no longer renews it", async () => {
    const { body: lease } = await world.issue(bob, await world.makeRole(), { renewable: true });
    const client = world.target.open(lease.credential.fields);
    const validFor = async () => {
      const [row] = await client<[{ seconds: number }]>`
        select extract(epoch from rolvaliduntil - now())::int as seconds from pg_roles where rolname = current_user`;
      return row.seconds;
    };
    expect(await validFor()).toBeWithin(840, 901);
    await bob.call("POST", `/access/leases/${lease.id}/renew`, { duration: 1800 });
    expect(await validFor()).toBeWithin(1740, 1801);
    await server.db
      .update(accessLease)
      .set({ dueAt: sql`now()` })
      .where(eq(accessLease.id, lease.id));
    await isGone(lease);
    expect(client`select 1`).rejects.toThrow();
    await client.end();
    expect(await reasonOf(lease)).toBe("expired");
  });

  test("when the approval of its request is withdrawn, and no other is issued for it", async () => {
    const role = await world.makeRole({ approval: "admin" });
    const { body: request } = await bob.call("POST", "/access/requests/", { role, reason: "x" });
    const decide = (verb: string, who = world.admin) =>
      who.call("POST", `/access/requests/${request.id}/${verb}`);
    expect((await decide("approve")).http).toBe(200);
    const lease = await leaseOf({ request_id: request.id }, role);
    expect((await decide("deny", bob)).http).toBe(403);
    expect((await decide("deny")).body.state).toBe("Denied");
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("approval_withdrawn");
    expect((await world.issue(bob, role, { request_id: request.id })).http).toBe(409);
    for (const verb of ["approve", "deny"]) expect((await decide(verb)).http).toBe(409);
  });

  test("never for a request that waits, is somebody else's, or is for another role", async () => {
    const [role, other] = [await world.makeRole({ approval: "admin" }), await world.makeRole()];
    const { body: request } = await bob.call("POST", "/access/requests/", { role, reason: "x" });
    const by = (who: Person, of: string) => world.issue(who, of, { request_id: request.id });
    expect((await by(bob, role)).http).toBe(409);
    expect((await world.admin.call("POST", `/access/requests/${request.id}/approve`)).http).toBe(200);
    expect([(await by(alice, role)).http, (await by(bob, other)).http]).toEqual([404, 404]);
    expect((await by(bob, role)).http).toBe(201);
  });

  test.each([{ breakGlass: false }, { breakGlass: true }])(
    "when its user gives up the approval, and no other is issued for it (break-glass: $breakGlass)",
    async ({ breakGlass }) => {
      const role = await world.makeRole({ approval: "admin", break_glass: true });
      const wanted = { role, reason: "x", incident: world.incident, break_glass: breakGlass };
      const { body: request } = await bob.call("POST", "/access/requests/", wanted);
      const decide = (verb: string, who = world.admin) =>
        who.call("POST", `/access/requests/${request.id}/${verb}`);
      if (!breakGlass) expect((await decide("approve")).http).toBe(200);
      const lease = await leaseOf({ request_id: request.id }, role);
      expect((await decide("cancel")).http).toBe(403);
      expect((await decide("cancel", bob)).body.state).toBe("Cancelled");
      await isGone(lease);
      expect(await reasonOf(lease)).toBe("approval_withdrawn");
      expect((await world.issue(bob, role, { request_id: request.id })).http).toBe(409);
      for (const verb of ["approve", "deny"]) expect((await decide(verb)).http).toBe(409);
      expect((await decide("cancel", bob)).http).toBe(409);
    },
  );

  test("when its user can no longer read the incident, unless an admin", async () => {
    server.clock.advance(1);
    const frank = await personOf(server, "frank@example.com", ["oncall"]);
    const root = await personOf(server, "gina@example.com", ["oncall", "admin"]);
    const { body: lease } = await world.issue(frank, await world.makeRole(), { incident: world.incident });
    const { body: kept } = await world.issue(root, await world.makeRole(), { incident: world.incident });
    await server.db.update(incident).set({ visibility: "Restricted" });
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("incident_hidden");
    expect((await root.call("GET", `/access/leases/${kept.id}`)).body.state).toBe("Active");
    await server.db.update(incident).set({ visibility: "Open" });
  });
});
