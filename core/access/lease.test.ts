import { describe, expect, test } from "bun:test";
import { eq, inArray, type SQL, sql } from "drizzle-orm";
import { accessLease } from "../../drizzle/schema/index.ts";
import { fakeCredential } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import {
  type AccessWorld,
  startAccessWorld,
  useFakeCredentials,
} from "../../tests/support/domain/access_world.ts";
import type { ApiAnswer } from "../../tests/support/http/people.ts";
import { until } from "../../tests/support/process/until.ts";
import { settingsOf } from "../plugin/settings.ts";
import { endLeases } from "./end.ts";

let world: AccessWorld;
const { credential, issued, makeRole } = useFakeCredentials((given) => {
  world = given;
});
const newestLease = async () => {
  const rows = await world.server.db
    .select()
    .from(accessLease)
    .orderBy(sql`id desc`)
    .limit(1);
  return rows[0]!;
};
const revokedNames = () => credential.to("revoke").map(({ name }) => name);

describe("a lease whose issue failed is revoked by name", () => {
  const failing = async () => {
    const { http, body } = await world.issue(world.alice, await makeRole());
    const lease = await newestLease();
    await until("its revocation", () => revokedNames().includes(lease.name));
    return { http, detail: body.detail as string, lease };
  };
  const stateOf = (id: number) =>
    until("its end", async () => {
      const { state } = await world.leaseRow(id);
      return state !== "Revoking" && state;
    });

  test("when the plugin throws after issuing", async () => {
    credential.answer({
      issue: () => {
        throw new Error("the connection was lost after COMMIT");
      },
    });
    const { http, lease } = await failing();
    expect([http, lease.endReason, await stateOf(lease.id)]).toEqual([503, "not_issued", "Failed"]);
  });

  test("when the plugin answers with an unknown kind", async () => {
    credential.answer({ issue: () => ({ ...issued(), kind: "wrong" as never }) });
    const { http, detail, lease } = await failing();
    expect(http).toBe(503);
    expect(detail).not.toContain("s3cret");
    expect(await stateOf(lease.id)).toBe("Failed");
  });

  test("when the credential has already expired", async () => {
    credential.answer({ issue: () => ({ ...issued(), expiresAt: "2020-01-01T00:00:00Z" }) });
    const { http, detail, lease } = await failing();
    expect([http, lease.endReason, await stateOf(lease.id)]).toEqual([503, "not_issued", "Failed"]);
    expect(detail).toEndWith("returned a credential that has already expired: check the clock of its target");
  });

  test("when the plugin hangs, and stays unfinished while its call may still be running", async () => {
    credential.answer({ issue: () => new Promise(() => {}) });
    const { http, lease } = await failing();
    expect([http, lease.endReason]).toEqual([503, "interrupted"]);
    // The first revocation may have been too early, so the lease is not finished yet.
    expect((await world.leaseRow(lease.id)).finishedAt).toBeNull();
  });

  test("when its revocation began while the plugin was issuing it", async () => {
    credential.answer({
      issue: async () => {
        await world.server.db
          .update(accessLease)
          .set({ dueAt: sql`now()` })
          .where(eq(accessLease.state, "Issuing"));
        await until("the worker to end the lease", async () => (await newestLease()).state === "Revoking");
        return issued();
      },
    });
    const { http, lease } = await failing();
    expect([http, lease.endReason, lease.issuedAt]).toEqual([409, "interrupted", null]);
  });

  test("a second time if the first revocation came before the plugin threw", async () => {
    let calls = 0;
    credential.answer({
      revoke: () => {
        calls += 1;
        return calls === 1 ? undefined : new Promise(() => {});
      },
      issue: async () => {
        const over = { dueAt: sql`now()`, createdAt: sql`created_at - interval '1 hour'` };
        await world.server.db.update(accessLease).set(over).where(eq(accessLease.state, "Issuing"));
        await until("the worker to revoke the lease", async () => (await newestLease()).finishedAt);
        throw new Error("the connection was lost after COMMIT");
      },
    });
    await world.issue(world.alice, await makeRole());
    await until("the second revocation", () => calls === 2);
    expect(await newestLease()).toMatchObject({ state: "Revoking", finishedAt: null });
  });
});

test("a lease that is locked, or whose incident is, does not delay the end of others", async () => {
  const { server, alice, incident, ids } = world;
  const role = await makeRole();
  const leases: number[] = [];
  for (const more of [{ incident }, {}, {}])
    leases.push((await world.issue(alice, role, more)).body.id as number);
  const states = () => Promise.all(leases.map(async (id) => (await world.leaseRow(id)).state));
  await server.db.transaction(async (tx) => {
    await tx.execute(sql`select from incident where id = ${ids.incidentId} for no key update`);
    await tx.execute(sql`select from access_lease where id = ${leases[1]} for no key update`);
    await server.db.execute(sql`update access_role set disabled_at = now() where slug = ${role}`);
    await until("the third to be Revoked", async () => (await states())[2] === "Revoked");
    expect(await states()).toEqual(["Active", "Active", "Revoked"]);
  });
  await until("the others to end", async () => (await states()).every((state) => state === "Revoked"));
});

test("a full batch of leases whose incident is locked does not delay the end of others", async () => {
  const { server, alice, incident, ids } = world;
  const { db } = server;
  const role = await makeRole();
  const first = (await world.issue(alice, role, { incident })).body.id as number;
  const row = await world.leaseRow(first);
  const later = (await world.issue(alice, role)).body.id as number;
  await db.transaction(async (tx) => {
    await tx.execute(sql`select from incident where id = ${ids.incidentId} for no key update`);
    // Only now: the worker ends them as soon as it can, because nobody with that name has signed in.
    await world.copyLease(row, 200);
    await db.execute(sql`update access_role set disabled_at = now() where slug = ${role}`);
    await until("the end of the other lease", async () => (await world.leaseRow(later)).state === "Revoked");
    expect((await world.leaseRow(first)).state).toBe("Active");
    await db.delete(accessLease).where(eq(accessLease.userName, "many@example.com"));
  });
});

test("revocations that cannot be recorded, because the incident is locked, do not delay others", async () => {
  const { server, alice, incident, ids } = world;
  const [other, ...busy] = [await makeRole(), await makeRole(), await makeRole()];
  // More than the pool has connections.
  const waiting = await Promise.all(
    busy.flatMap((role) => Array.from({ length: 8 }, () => world.issue(alice, role, { incident }))),
  );
  const lease = (await world.issue(alice, other)).body.id as number;
  const rows = () => Promise.all(waiting.map(({ body }) => world.leaseRow(body.id as number)));
  const states = async () => (await rows()).map(({ state }) => state);
  const names = (await rows()).map(({ name }) => name);
  await server.db.transaction(async (tx) => {
    await tx.execute(sql`select from incident where id = ${ids.incidentId} for no key update`);
    const ending = { state: "Revoking" as const, endReason: "expired" as const, dueAt: sql`now()` };
    await server.db.update(accessLease).set(ending).where(inArray(accessLease.name, names));
    await until("the plugin to revoke them", () => names.every((name) => revokedNames().includes(name)));
    await alice.call("DELETE", `/access/leases/${lease}`);
    await until("the end of the other lease", async () => (await world.leaseRow(lease)).state === "Revoked");
    expect(new Set(await states())).toEqual(new Set(["Revoking"]));
  });
  await until("the others to end", async () => (await states()).every((state) => state === "Revoked"));
});

test("every change locks the incident before its own row, like the deletion of the incident", async () => {
  const { db } = world.server;
  const { alice, bob, ids, incident } = world;
  const role = await makeRole({ approval: "commander", incident_required: true, break_glass: true });
  const open = await makeRole();
  const request = async (more: object = {}) => {
    const wanted = { role, incident, reason: "x", ...more };
    return (await bob.call("POST", "/access/requests/", wanted)).body.id as number;
  };
  const lease = async () => (await world.issue(bob, open, { incident, duration: 600 })).body.id as number;
  const decide = (id: number, verb: string, who = alice) =>
    who.call("POST", `/access/requests/${id}/${verb}`);
  const [approved, denied, cancelled] = [await request(), await request(), await request()];
  const reviewed = await request({ break_glass: true });
  const revoked = await lease();
  const revoking = Promise.withResolvers<void>();
  credential.answer({ revoke: () => revoking.promise });
  await bob.call("DELETE", `/access/leases/${revoked}`);
  const finishRevocation = async () => {
    revoking.resolve();
    await until("the revocation", async () => (await world.leaseRow(revoked)).state === "Revoked");
  };
  const changes: [string, number | SQL, () => unknown][] = [
    ["access_lease", revoked, finishRevocation],
    ["access_request", approved, () => decide(approved, "approve")],
    ["access_request", denied, () => decide(denied, "deny")],
    ["access_request", cancelled, () => decide(cancelled, "cancel", bob)],
    ["access_request", reviewed, () => decide(reviewed, "review")],
    ["access_lease", sql`(select max(id) from access_lease)`, lease],
  ];
  for (const [table, id, change] of changes) {
    const begun = await db.transaction(async (tx) => {
      await tx.execute(sql`select from incident where id = ${ids.incidentId} for no key update`);
      const ended = change();
      await somebodyWaits(db);
      // Fails if the change has locked it.
      await tx.execute(sql`select from ${sql.identifier(table)} where id = ${id} for update nowait`);
      return { ended };
    });
    // Or its work would be taken for that of the next one.
    await begun.ended;
  }
});

test("a lease ends if its client no longer waits for the credential", async () => {
  const client = new AbortController();
  credential.answer({
    issue: async () => {
      client.abort();
      // Until the server, in this process, knows that the connection is closed.
      for (let turn = 0; turn < 10; turn += 1) await Bun.sleep(10);
      return issued();
    },
  });
  const body = { role: await makeRole() };
  const answer = world.alice.call("POST", "/access/leases/", body, {}, client.signal);
  expect(await answer.catch((error: Error) => error.name)).toBe("AbortError");
  await until("the revocation", async () => (await newestLease()).state === "Revoked");
  expect((await newestLease()).endReason).toBe("not_received");
});

test("a lease that is being revoked cannot be renewed, and a late renewal does not revive it", async () => {
  const { body: lease } = await world.issue(world.alice, await makeRole());
  credential.answer({
    renew: async () => {
      await world.alice.call("DELETE", `/access/leases/${lease.id}`);
      return {};
    },
  });
  const renew = () => world.alice.call("POST", `/access/leases/${lease.id}/renew`, { duration: 7200 });
  const { http, body } = await renew();
  expect([http, body.detail]).toEqual([409, "The lease ended while it was being renewed"]);
  expect((await renew()).http).toBe(409);
  await until("the revocation", async () => (await world.leaseRow(lease.id)).state === "Revoked");
});

test("a second renewal while one is in progress fails and says when to try again", async () => {
  const { body: lease } = await world.issue(world.alice, await makeRole());
  const renew = () => world.alice.call("POST", `/access/leases/${lease.id}/renew`, { duration: 7200 });
  let second: Awaited<ReturnType<typeof renew>> | undefined;
  let calls = 0;
  credential.answer({
    renew: async () => {
      calls += 1;
      second ??= await renew();
      return {};
    },
  });
  expect((await renew()).http).toBe(200);
  expect([second!.http, second!.body.detail]).toEqual([
    409,
    "An identical request is in progress: try again in 5 s",
  ]);
  expect(calls).toBe(1);
});

describe("a lease that its client renews", () => {
  const lasts = (lease: ApiAnswer["body"]) =>
    [lease.expires_at, lease.max_expires_at].map(
      (end) => (Date.parse(end) - Date.parse(lease.created_at)) / 1000,
    );
  const issue = async (role: string, more: object = {}) =>
    (await world.issue(world.bob, role, { renewable: true, ...more })).body;

  test("lasts 15 minutes, and can be renewed for as long as its user asked, or its role allows", async () => {
    const role = await makeRole();
    expect(lasts(await issue(role))).toEqual([900, 7200]);
    expect(lasts(await issue(role, { duration: 1800 }))).toEqual([900, 1800]);
    expect(lasts(await issue(role, { duration: 600 }))).toEqual([600, 600]);
    expect((await issue(role, { duration: 7201 })).field).toBe("duration");
    expect(lasts(await issue(role, { renewable: false }))).toEqual([3600, 7200]);
  });

  test("ends with its approval", async () => {
    const role = await makeRole({ approval: "admin" });
    const wanted = { role, reason: "x", duration: 1200 };
    const { body: request } = await world.bob.call("POST", "/access/requests/", wanted);
    const { body: approved } = await world.admin.call("POST", `/access/requests/${request.id}/approve`);
    const lease = await issue(role, { request_id: request.id, duration: 1200 });
    expect(lasts(lease)[0]).toBe(900);
    expect(lease.max_expires_at).toBe(approved.expires_at);
    const renew = () => world.bob.call("POST", `/access/leases/${lease.id}/renew`, { duration: 900 });
    await world.server.db
      .update(accessLease)
      .set({ expiresAt: sql`now() + interval '1 minute'` })
      .where(eq(accessLease.id, lease.id));
    const { body: renewed } = await renew();
    expect(lasts(renewed)[0]).toBeWithin(900, 903);
    await world.server.db
      .update(accessLease)
      .set({ maxExpiresAt: sql`now() + interval '20 seconds'`, expiresAt: sql`now() + interval '9 seconds'` })
      .where(eq(accessLease.id, lease.id));
    const { body: last } = await renew();
    expect(last.expires_at).toBe(last.max_expires_at);
  });

  test("stays unchanged if its user has extended it for longer, and the timeline has no renewals", async () => {
    const { incident, ids, server, bob } = world;
    const lease = await issue(await makeRole(), { incident });
    const renew = async (duration: number) =>
      (await bob.call("POST", `/access/leases/${lease.id}/renew`, { duration })).body;
    const extended = await renew(3600);
    expect(lasts(extended)[0]).toBeWithin(3600, 3603);
    expect(await renew(900)).toEqual(extended);
    expect(credential.to("renew").filter(({ leaseId }) => leaseId === lease.id)).toHaveLength(1);
    const rows = await server.db.execute(sql`
      select kind as what, description from event
      where incident_id = ${ids.incidentId} and data ->> 'lease_id' = ${String(lease.id)}
      union all select action, data ->> 'seconds' from audit_log where subject = ${`lease/${lease.id}`}`);
    expect([...rows]).toEqual(
      expect.arrayContaining([
        {
          what: "access.issued",
          description: `bob@example.com received ${lease.role} while a command runs, for at most 2 hours`,
        },
        { what: "access.renewed", description: "3600" },
      ]),
    );
    expect(rows).toHaveLength(3);
  });
});

test("a renewal never exceeds the limit of the role", async () => {
  const { body: lease } = await world.issue(world.alice, await makeRole());
  const { body } = await world.alice.call("POST", `/access/leases/${lease.id}/renew`, { duration: 7200 });
  expect(body.expires_at).toBe(body.max_expires_at);
  const again = await world.alice.call("POST", `/access/leases/${lease.id}/renew`, { duration: 7200 });
  expect([again.http, again.body.detail]).toEqual([409, expect.stringContaining("cannot be extended")]);
});

test.each(["2999-01-01T00:00:00Z", "2999-99-99T99:99:99Z"])(
  "a plugin cannot extend a lease beyond its limit: %s",
  async (expiresAt) => {
    const { body: lease } = await world.issue(world.alice, await makeRole());
    credential.answer({ renew: () => ({ expiresAt }) });
    const { http, body } = await world.alice.call("POST", `/access/leases/${lease.id}/renew`, {
      duration: 7200,
    });
    expect([http, body.expires_at]).toEqual([200, body.max_expires_at]);
  },
);

test("durations, reasons and role names beyond their limits are refused with 400", async () => {
  const role = await makeRole();
  for (const duration of [0, -1, 59, 7201, 1e9, 60.5])
    expect([duration, (await world.issue(world.alice, role, { duration })).http]).toEqual([duration, 400]);
  const approved = await makeRole({ approval: "admin" });
  for (const more of [{ reason: "x".repeat(10_000) }, { reason: "" }, { reason: "x", duration: 7201 }]) {
    const { http } = await world.alice.call("POST", "/access/requests/", { role: approved, ...more });
    expect([more, http]).toEqual([more, 400]);
  }
  expect((await world.issue(world.alice, "x'; drop table access_lease; --")).http).toBe(400);
});

test("a lease ends if the database's clock was set back to before it, and not for the seconds of a standby", async () => {
  const role = await makeRole();
  const issued = async (ahead: string) => {
    const { body } = await world.issue(world.alice, role);
    const createdAt = sql`now() + ${ahead}::interval`;
    await world.server.db.update(accessLease).set({ createdAt }).where(eq(accessLease.id, body.id));
    return body.id as number;
  };
  const [recent, future] = [await issued("30 seconds"), await issued("3 hours")];
  await until("the worker to end it", async () => (await world.leaseRow(future)).state !== "Active");
  expect((await world.leaseRow(future)).endReason).toBe("clock_set_back");
  expect((await world.leaseRow(recent)).state).toBe("Active");
});

test("a lease cannot be renewed after its role was disabled, even before a worker ends it", async () => {
  // This world has no worker.
  await using other = await startAccessWorld(pluginsOf(credential));
  const slug = await other.makeRole({ plugin: "fake-credential", settings: {} });
  const { body: lease } = await other.issue(other.alice, slug, { duration: 600 });
  const { body: role } = await other.admin.call("GET", `/access/roles/${slug}`);
  expect((await other.admin.call("PUT", `/access/roles/${slug}`, { ...role, disabled: true })).http).toBe(
    200,
  );
  const { http, body } = await other.alice.call("POST", `/access/leases/${lease.id}/renew`, {
    duration: 900,
  });
  expect([http, body.detail]).toEqual([409, expect.stringContaining("disabled")]);
});

test("a role's secrets are masked in every text from its plugin", async () => {
  const secret = "pa'ss w%rd";
  const says = { detail: `postgres://broker:${secret}@db refuses ${encodeURIComponent(secret)}` };
  const fails = () => {
    throw says;
  };
  const fake = fakeCredential({ check: fails, issue: fails, revoke: fails, renew: fails, list: fails });
  const { settings: roleSettings } = settingsOf("fake", {
    type: "object",
    required: ["password"],
    properties: { password: { type: "string", secret: true } },
  });
  const plugin = { ...fake.plugin, roleSettings };
  await using other = await startAccessWorld(pluginsOf({ plugin, assertExpected: () => {} }));
  const { admin, alice, bob } = other;
  const role = await other.makeRole({ plugin: plugin.slug, settings: { password: secret } });
  const said = [
    (await admin.call("GET", `/access/roles/${role}/check`)).body.problems[0].problem,
    (await admin.call("GET", `/access/roles/${role}/reconcile`)).body.detail,
    (await other.issue(alice, role)).body.detail,
  ];
  fake.answer({ issue: issued, check: () => [{ problem: says.detail, fix: says.detail }] });
  said.push(...Object.values((await admin.call("GET", `/access/roles/${role}/check`)).body.problems[0]));
  const { body: lease } = await other.issue(bob, role);
  said.push((await bob.call("POST", `/access/leases/${lease.id}/renew`, { duration: 7000 })).body.detail);
  await bob.call("DELETE", `/access/leases/${lease.id}`);
  await using _worker = other.startWorker();
  said.push(await until("a revocation to fail", async () => (await other.leaseRow(lease.id)).error));
  for (const text of said) expect(text).toContain("postgres://broker:***@db refuses ***");
});

test("a user may have 100 leases of a plugin, or 2,000 if its credentials only expire, also of concurrent requests", async () => {
  const expiring = fakeCredential(
    { check: () => [], issue: issued, revoke: () => {} },
    { slug: "fake-expiring" },
  );
  const revocable = {
    plugin: { ...expiring.plugin, revocable: "expiry" as const },
    assertExpected: () => {},
  };
  await using other = await startAccessWorld(pluginsOf(credential, revocable));
  const { db } = other.server;
  const fill = async (plugin: string, count: number) => {
    const slug = await other.makeRole({ plugin, settings: {} });
    const { body } = await other.issue(other.alice, slug);
    const [row] = await db.select().from(accessLease).where(eq(accessLease.id, body.id));
    const { id: _, ...lease } = row!;
    const rows = Array.from({ length: count - 1 }, (_, at) => ({ ...lease, name: `${lease.name}_${at}` }));
    await db.insert(accessLease).values(rows);
    return slug;
  };
  const one = await fill("fake-credential", 95);
  const two = await fill("fake-expiring", 1995);
  for (const role of [one, two]) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => other.issue(other.alice, role)));
    expect(answers.map(({ http }) => http).sort()).toEqual([...Array(5).fill(201), ...Array(5).fill(409)]);
    expect(await other.issue(other.alice, role)).toMatchObject({
      http: 409,
      body: { detail: expect.stringMatching(/^You already have (100|2000) leases: /) },
    });
    expect((await other.issue(other.bob, role)).http).toBe(201);
  }
});

test("the search for leases that must end does not read those that have ended", async () => {
  const { db, config } = world.server;
  const { id: _, ...row } = await world.leaseRow(
    (await world.issue(world.alice, await makeRole())).body.id as number,
  );
  const ended = { ...row, state: "Revoked" as const, finishedAt: row.createdAt, dueAt: null };
  const rows = Array.from({ length: 2000 }, (_, index) => ({ ...ended, name: `${row.name}_${index}` }));
  await db.insert(accessLease).values(rows);
  await db.execute(sql`analyze access_lease`);
  const asked = noteAsked(db);
  await endLeases({ db, config }, new AbortController().signal);
  const search = asked.find(({ text }) => text.includes("as ending"))!;
  expect(await rowsRead(db, search)).toBeLessThan(1000);
});

test("a public key is refused for a role whose credentials do not use one", async () => {
  const { http, body } = await world.issue(world.alice, await makeRole(), { public_key: "ssh-ed25519 AAAA" });
  expect([http, body.detail]).toEqual([400, expect.stringContaining("leave out public_key")]);
});
