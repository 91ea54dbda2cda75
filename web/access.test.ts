import { beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { accessLease, accessRequest, accessRole } from "../drizzle/schema/index.ts";
import { PageReader } from "../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000, sessionLifetime: 86_400 },
);

let frank: PageReader;
let root: PageReader;
beforeAll(async () => {
  frank = await PageReader.signIn(given.server, "frank@example.com", ["dev"]);
  root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
});

async function newRole(values: Partial<typeof accessRole.$inferInsert> = {}): Promise<string> {
  const at = given.server.clock.now();
  const slug = `role-${crypto.randomUUID()}`;
  await given.server.db.insert(accessRole).values({
    slug,
    description: "Read <b>orders</b>",
    pluginSlug: "ssh-ca",
    settings: {},
    groups: ["dev"],
    defaultDuration: 3600,
    maxDuration: 7200,
    approval: "admin",
    incidentRequired: false,
    breakGlass: true,
    createdAt: at,
    updatedAt: at,
    ...values,
  });
  return slug;
}

async function requested(fields: Record<string, string> = {}) {
  const role = await newRole();
  const { path } = await frank.submit("/app/access/request", { role, reason: `For ${role}`, ...fields });
  expect(path).toBe("/app/access");
  const [row] = await given.server.db
    .select({ id: accessRequest.id })
    .from(accessRequest)
    .innerJoin(accessRole, eq(accessRole.id, accessRequest.roleId))
    .where(eq(accessRole.slug, role));
  return { role, id: row!.id, at: `/app/access/requests/${row!.id}` };
}

const rowOf = async (id: number) =>
  (await given.server.db.select().from(accessRequest).where(eq(accessRequest.id, id)))[0]!;

test("access is requested, and approved by somebody else with a reason", async () => {
  const { id, at, role } = await requested({ minutes: "45" });
  expect(await rowOf(id)).toMatchObject({ state: "Pending", duration: 2700 });
  expect((await frank.open("/app/access")).html).toContain(`${at}/cancel`);
  expect((await root.open("/app/work")).html).toContain(`${at}/approve`);
  expect((await frank.submit(`${at}/approve`)).status).toBe(403);
  await root.submit(`${at}/approve`, { note: "The usual" });
  expect(await rowOf(id)).toMatchObject({
    state: "Approved",
    note: "The usual",
    decidedBy: "root@example.com",
  });
  const { html } = await frank.open("/app/access");
  expect(html).toContain("The usual");
  expect(html).toContain(role);
  expect((await root.submit(`${at}/approve`)).status).toBe(409);
});

test("it is denied, given up, and with break-glass reviewed", async () => {
  const denied = await requested();
  await root.submit(`${denied.at}/deny`, { note: "Not today" });
  expect((await rowOf(denied.id)).state).toBe("Denied");
  const cancelled = await requested();
  await frank.submit(`${cancelled.at}/cancel`);
  expect((await rowOf(cancelled.id)).state).toBe("Cancelled");
  const { name: incident } = await given.reported();
  const broken = await requested({ break_glass: "on", incident });
  expect((await rowOf(broken.id)).state).toBe("Approved");
  await root.submit(`${broken.at}/review`);
  expect((await rowOf(broken.id)).reviewedBy).toBe("root@example.com");
});

test("a request that cannot be made is shown again", async () => {
  const role = await newRole({ incidentRequired: true });
  for (const [fields, words] of [
    [{ minutes: "soon" }, "Write a number of minutes"],
    [{ incident: "INC-999999" }, "incident"],
    [{}, "incident"],
  ] as const) {
    const { status, html } = await frank.submit("/app/access/request", {
      role,
      reason: "Keep me",
      ...fields,
    });
    expect([status < 500, status >= 400]).toEqual([true, true]);
    expect(html).toContain("Keep me");
    expect(html).toContain(words);
  }
});

test("a lease is shown to its user and to admins, with its incident, and revoked", async () => {
  const { id: incidentId, name } = await given.reported();
  const slug = await newRole();
  const [role] = await given.server.db.select().from(accessRole).where(eq(accessRole.slug, slug));
  const at = new Date();
  const later = new Date(at.getTime() + 3_600_000);
  const [lease] = await given.server.db
    .insert(accessLease)
    .values({
      roleId: role!.id,
      userName: "frank@example.com",
      tokenId: crypto.randomUUID(),
      incidentId,
      incidentName: name,
      name: `svc_${slug}`,
      handle: "x",
      state: "Active",
      createdAt: at,
      issuedAt: at,
      expiresAt: later,
      maxExpiresAt: later,
    })
    .returning();
  const revoke = `/app/access/leases/${lease!.id}/revoke`;
  for (const page of ["/app/access", "/app/work"]) expect((await frank.open(page)).html).toContain(revoke);
  expect((await frank.open(`/app/incidents/${incidentId}`)).html).toContain(`<span>${slug}</span>`);
  const dana = await PageReader.signIn(given.server, "dana@example.com");
  expect((await dana.open(revoke)).status).toBe(404);
  expect((await dana.open(`/app/incidents/${incidentId}`)).html).not.toContain(slug);
  expect((await root.open("/app/access")).html).toContain(revoke);
  expect((await frank.submit(revoke)).path).toBe("/app/access");
  const [ended] = await given.server.db.select().from(accessLease).where(eq(accessLease.id, lease!.id));
  expect(ended!.state).toBe("Revoking");
});
