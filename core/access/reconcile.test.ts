import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray } from "drizzle-orm";
import { accessLease } from "../../drizzle/schema/index.ts";
import { fakePlugin } from "../../plugins/fake/fake.ts";
import { fakeCredential } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { type AccessWorld, startAccessWorld } from "../../tests/support/domain/access_world.ts";
import { until } from "../../tests/support/process/until.ts";

let world: AccessWorld;
beforeAll(async () => {
  world = await startAccessWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const reconcile = (role: string, names?: string[]) =>
  names
    ? world.admin.call("POST", `/access/roles/${role}/reconcile`, { names })
    : world.admin.call("GET", `/access/roles/${role}/reconcile`);

test("after a restore, reconcile lists orphans and missing leases, and revokes those it is given", async () => {
  const { alice, target, server, issue, leaseRow } = world;
  const role = await world.makeRole();
  const [kept, forgotten, ended] = [
    (await issue(alice, role)).body,
    (await issue(alice, role)).body,
    (await issue(alice, role)).body,
  ];
  expect((await reconcile(role)).body).toEqual({ orphans: [], missing: [] });

  // One lease was issued after the backup, another was revoked after it.
  await server.db.delete(accessLease).where(eq(accessLease.id, forgotten.id));
  await target.sql.unsafe(`drop role ${ended.name}`);
  // A role of another installation, and one created by hand.
  await target.sql
    .unsafe(`create role svc_theirs_1; comment on role svc_theirs_1 is 'svc 0dd0dd0dd0dd: lease ${kept.id}';
    create role svc_by_hand in role ${target.parent}`);
  const differences = { orphans: [forgotten.name], missing: [ended.name] };
  expect((await reconcile(role)).body).toEqual(differences);

  await using _worker = world.startWorker();
  const chosen = await reconcile(role, [
    ...differences.orphans,
    ...differences.missing,
    kept.name,
    "svc_theirs_1",
  ]);
  expect(chosen.body).toEqual({ revoking: [forgotten.name, ended.name] });
  await until("the orphan to be gone", async () => !(await target.leases()).includes(forgotten.name));
  await until("both to be recorded", async () => {
    const rows = await server.db.select().from(accessLease).where(eq(accessLease.state, "Revoked"));
    return rows.length === 2;
  });
  expect((await leaseRow(ended.id)).endReason).toBe("missing");
  expect((await leaseRow(kept.id)).state).toBe("Active");
  expect((await target.leases()).sort()).toEqual([kept.name, "svc_by_hand"].sort());
  expect(await target.sql`select 1 from pg_roles where rolname = 'svc_theirs_1'`).toHaveLength(1);
  expect((await reconcile(role)).body).toEqual({ orphans: [], missing: [] });
  await target.sql.unsafe("drop role svc_theirs_1; drop role svc_by_hand");
});

test("a credential that exists although its lease is Revoked is an orphan, and is revoked again", async () => {
  const { alice, target, server, issue } = world;
  const role = await world.makeRole();
  const { body: lease } = await issue(alice, role);
  await server.db
    .update(accessLease)
    .set({ state: "Revoked", finishedAt: new Date(), attempts: 9 })
    .where(eq(accessLease.id, lease.id));
  expect((await reconcile(role)).body.orphans).toContain(lease.name);
  expect((await reconcile(role, [lease.name])).body).toEqual({ revoking: [lease.name] });
  // The retries start over, without the long pauses of earlier attempts.
  expect(await world.leaseRow(lease.id)).toMatchObject({ state: "Revoking", finishedAt: null, attempts: 0 });
  await using _worker = world.startWorker();
  await until("the orphan to be revoked", async () => !(await target.leases()).includes(lease.name));
});

describe("during the listing of the target", () => {
  const credential = fakeCredential({
    check: () => [],
    issue: () => ({ kind: "token" as const, fields: {} }),
  });
  let other: AccessWorld;
  beforeAll(async () => {
    other = await startAccessWorld(pluginsOf(credential));
  });
  afterAll(() => other[Symbol.asyncDispose]());
  const makeRole = () => other.makeRole({ plugin: "fake-credential", settings: {} });
  const differences = async (role: string) =>
    (await other.admin.call("GET", `/access/roles/${role}/reconcile`)).body;
  const none = { orphans: [], missing: [] };

  test("a lease that is issued is not an orphan", async () => {
    const role = await makeRole();
    credential.answer({ list: async () => [(await other.issue(other.alice, role)).body.name] });
    expect(await differences(role)).toEqual(none);
  });

  test("a lease that ends is neither an orphan nor missing", async () => {
    const role = await makeRole();
    const leases = [(await other.issue(other.alice, role)).body, (await other.issue(other.alice, role)).body];
    const ending = inArray(
      accessLease.id,
      leases.map(({ id }) => id),
    );
    credential.answer({
      list: async () => {
        const ended = { state: "Revoked" as const, finishedAt: new Date(), dueAt: null };
        await other.server.db.update(accessLease).set(ended).where(ending);
        return [leases[0].name];
      },
    });
    expect(await differences(role)).toEqual(none);
  });

  test("a lease that becomes Active is not missing", async () => {
    const role = await makeRole();
    const { body: lease } = await other.issue(other.alice, role);
    const set = (state: "Issuing" | "Active") =>
      other.server.db.update(accessLease).set({ state }).where(eq(accessLease.id, lease.id));
    await set("Issuing");
    credential.answer({
      list: async () => {
        await set("Active");
        return [];
      },
    });
    expect(await differences(role)).toEqual(none);
  });

  test("leases of other roles and leases that are Issuing or Revoking are not missing", async () => {
    const [role, another] = [await makeRole(), await makeRole()];
    const { body: issuing } = await other.issue(other.alice, role);
    await other.issue(other.alice, another);
    credential.answer({ list: () => [] });
    for (const state of ["Issuing", "Revoking"] as const) {
      await other.server.db.update(accessLease).set({ state }).where(eq(accessLease.id, issuing.id));
      expect(await differences(role)).toEqual(none);
    }
  });

  test("a failure of the plugin is reported with status 503", async () => {
    const role = await other.makeRole({ plugin: "fake-credential", settings: {} });
    credential.answer({
      list: () => {
        throw new Error("no route to the target");
      },
    });
    const { http, body } = await other.admin.call("GET", `/access/roles/${role}/reconcile`);
    expect([http, body.detail]).toEqual([503, expect.stringContaining(`${role}: `)]);
  });
});

test("reconcile revokes only the names it is given", async () => {
  const { alice, target, server, issue } = world;
  const role = await world.makeRole();
  const leases = [(await issue(alice, role)).body, (await issue(alice, role)).body];
  const names: string[] = leases.map(({ name }) => name);
  for (const { id } of leases) await server.db.delete(accessLease).where(eq(accessLease.id, id));
  expect((await reconcile(role)).body).toEqual({ orphans: names.toSorted(), missing: [] });
  expect((await reconcile(role, [names[0]!])).body).toEqual({ revoking: [names[0]] });
  expect((await reconcile(role)).body).toEqual({ orphans: [names[1]], missing: [] });
  await target.sql.unsafe(`drop role ${names[1]}`);
});

test("reconcile fails if the plugin cannot list its credentials", async () => {
  const forgetful = fakePlugin("credential", ["check", "issue", "revoke"], { check: () => [] }, {});
  await using other = await startAccessWorld(pluginsOf(forgetful));
  const role = await other.makeRole({ plugin: forgetful.plugin.slug, settings: {} });
  const { http, body } = await other.admin.call("GET", `/access/roles/${role}/reconcile`);
  expect([http, body.detail]).toEqual([
    409,
    `The plugin ${forgetful.plugin.slug} cannot list the credentials it issued`,
  ]);
});
