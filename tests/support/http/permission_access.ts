import { eq } from "drizzle-orm";
import { clientAuthority, signingAuthority } from "../../../core/authority/authority.ts";
import type { Database } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { type AccessTarget, startAccessTarget } from "../domain/access_target.ts";
import { newCertificateRequest } from "../domain/certificate_request.ts";
import { type FakeSts, startFakeSts } from "../domain/fake_sts.ts";
import { usualRole } from "../domain/usual_role.ts";
import type { Prepare } from "./permission_catalog.ts";
import { users, type World } from "./permission_world.ts";
import type { Role } from "./permissions.ts";

const targets = new WeakMap<World, AccessTarget["settings"]>();

/** Creates a role for an existing database, so that leases can be issued. */
async function makeRole(world: World, more: object = {}) {
  let settings = targets.get(world);
  if (!settings) {
    const target = await startAccessTarget();
    ({ settings } = target);
    await target.sql.end();
    targets.set(world, settings);
  }
  const slug = `quokka-${world.next()}`;
  const fields = {
    ...usualRole,
    slug,
    description: "",
    plugin: "postgresql-role",
    settings,
    groups: ["*"],
    ...more,
  };
  const { http, body } = await world.admin.call("POST", "/access/roles/", fields);
  if (http !== 201) throw new Error(`POST /access/roles/: ${http} ${JSON.stringify(body)}`);
  return { slug, id: body.id as number, fields };
}

const userOf = (role: Role) => users[role][0]![0] ?? "nobody@example.com";
const elsewhere = "quokka@example.com";

async function insertRequest(
  world: World,
  userName: string,
  more: object = {},
  approval: object = { approval: "admin" },
): Promise<number> {
  const role = await makeRole(world, approval);
  const [row] = await world.server.db
    .insert(schema.accessRequest)
    .values({
      roleId: role.id,
      userName,
      reason: "quokka",
      duration: 3600,
      createdAt: new Date(),
      expiresAt: new Date(Date.now() + 3_600_000),
      ...more,
    })
    .returning({ id: schema.accessRequest.id });
  return row!.id;
}

async function insertLease(world: World, userName: string): Promise<number> {
  const role = await makeRole(world);
  const [now, later] = [new Date(), new Date(Date.now() + 60_000)];
  const [row] = await world.server.db
    .insert(schema.accessLease)
    .values({
      roleId: role.id,
      userName,
      tokenId: crypto.randomUUID(),
      name: `svc_quokka_${world.next()}`,
      state: "Active",
      createdAt: now,
      issuedAt: now,
      expiresAt: later,
      dueAt: later,
      maxExpiresAt: new Date(Date.now() + 9_000_000),
    })
    .returning({ id: schema.accessLease.id });
  return row!.id;
}

/** Inserts a client certificate of another user. Returns its serial number. */
async function insertToken({ server }: World): Promise<string> {
  const [jti, at, later] = [crypto.randomUUID(), server.clock.now(), after(server.clock.now(), 3600)];
  await server.db.insert(schema.token).values({ jti, userName: elsewhere, issuedAt: at, expiresAt: later });
  return jti;
}

async function insertCertificate(world: World): Promise<string> {
  const { server } = world;
  const { id } = await signingAuthority(server, "x509", clientAuthority);
  const [jti, at, later] = [await insertToken(world), server.clock.now(), after(server.clock.now(), 3600)];
  const serial = jti.replaceAll("-", "");
  await server.db
    .insert(schema.clientCertificate)
    .values({ sha256: jti, serial, jti, authorityKeyId: id, createdAt: at, expiresAt: later });
  return serial;
}

/** Inserts a role without a plugin, with a request and a lease. */
export async function insertAccess(db: Database, slug: string): Promise<void> {
  const [at, later] = [new Date(), new Date(Date.now() + 3_600_000)];
  const [role] = await db
    .insert(schema.accessRole)
    .values({
      slug,
      description: "",
      pluginSlug: "none",
      settings: {},
      groups: ["*"],
      approval: "admin",
      defaultDuration: 3600,
      maxDuration: 3600,
      incidentRequired: false,
      breakGlass: false,
      createdAt: at,
      updatedAt: at,
    })
    .returning({ id: schema.accessRole.id });
  const common = { roleId: role!.id, userName: elsewhere, createdAt: at, expiresAt: later };
  await db.insert(schema.accessRequest).values({ ...common, reason: "quokka", duration: 3600 });
  await db.insert(schema.accessLease).values({
    ...common,
    tokenId: crypto.randomUUID(),
    name: `svc_${slug}`,
    maxExpiresAt: later,
    dueAt: later,
  });
}

const fakeSts = new WeakMap<World, FakeSts>();

/** Creates an access role for an AWS role that issues sessions. */
async function makeAwsRole(world: World, groups: string[]) {
  let sts = fakeSts.get(world);
  if (!sts) {
    sts = startFakeSts();
    sts.provider.issuer = world.server.url;
    fakeSts.set(world, sts);
  }
  const roleArn = `arn:aws:iam::123456789012:role/quokka-${world.next()}`;
  sts.roles.set(roleArn, {
    maxSessionSeconds: 7200,
    web: { audience: "sts.amazonaws.com", subject: "*" },
    keys: { ids: [] },
  });
  const settings = { roleArn, endpoint: sts.url };
  await makeRole(world, { plugin: "aws-web-identity", settings, groups });
  return roleArn;
}
const ofAws =
  (prepare: (arn: string) => Awaited<ReturnType<Prepare>>, groups = ["*"]): Prepare =>
  async (world) =>
    prepare(await makeAwsRole(world, groups));
const hiddenFrom = ["others"];

const pathOf =
  (make: (world: World) => Promise<number | string>, prefix: string, suffix = ""): Prepare =>
  async (world) => ({ path: `${prefix}${await make(world)}${suffix}` });
const ofRole =
  (suffix = ""): Prepare =>
  async (world) => ({ path: `/access/roles/${(await makeRole(world)).slug}${suffix}` });
const requestOfOther = (suffix = "", more: object = {}, approval?: object) =>
  pathOf((world) => insertRequest(world, elsewhere, more, approval), "/access/requests/", suffix);
const byGroup = { approval: "group", approver_groups: ["quokka"] };
const used = { breakGlass: true, state: "Approved", decidedAt: new Date() };

/** The requests about access in docs/permissions.md. */
export const accessRequestsOf: Readonly<Record<string, Prepare>> = {
  "GET /access/roles/": async (world) => {
    await makeRole(world);
    return { path: "/access/roles/", shows: "quokka" };
  },
  "GET /access/roles/ of other groups": async (world) => {
    const { slug } = await makeRole(world, { groups: ["others"] });
    return { path: "/access/roles/?limit=200", shows: slug };
  },
  "POST /access/roles/": async (world) => {
    const { fields } = await makeRole(world);
    return { path: "/access/roles/", body: { ...fields, slug: `${fields.slug}-too` } };
  },
  "GET /access/roles/{role}": ofRole(),
  "PUT /access/roles/{role}": async (world) => {
    const { slug, fields } = await makeRole(world);
    return { path: `/access/roles/${slug}`, body: { ...fields, version: 1 } };
  },
  "DELETE /access/roles/{role}": ofRole(),
  "GET /access/roles/{role}/check": ofRole("/check"),
  "GET /access/roles/{role}/reconcile": ofRole("/reconcile"),
  "POST /access/roles/{role}/reconcile": async (world) => ({
    path: `/access/roles/${(await makeRole(world)).slug}/reconcile`,
    body: { names: [] },
  }),
  "GET /access/requests/ of others": async (world) => {
    await insertRequest(world, elsewhere);
    return { path: "/access/requests/", shows: elsewhere };
  },
  "POST /access/requests/": async (world) => {
    const { slug } = await makeRole(world, { approval: "admin" });
    // All cells use the same user, who would have too many pending requests.
    await world.server.db
      .update(schema.accessRequest)
      .set({ state: "Cancelled", decidedAt: new Date() })
      .where(eq(schema.accessRequest.state, "Pending"));
    return { path: "/access/requests/", body: { role: slug, reason: "quokka" } };
  },
  "GET /access/requests/{request_id} of somebody else": requestOfOther(),
  "POST /access/requests/{request_id}/approve of somebody else": requestOfOther("/approve"),
  "POST /access/requests/{request_id}/approve with approver groups": requestOfOther("/approve", {}, byGroup),
  "POST /access/requests/{request_id}/deny of somebody else": requestOfOther("/deny"),
  "POST /access/requests/{request_id}/deny with approver groups": requestOfOther("/deny", {}, byGroup),
  "POST /access/requests/{request_id}/cancel": async (world, role) => ({
    path: `/access/requests/${await insertRequest(world, userOf(role))}/cancel`,
    as: world.people[role][0]!,
  }),
  "POST /access/requests/{request_id}/review of somebody else": requestOfOther("/review", used),
  "POST /access/requests/{request_id}/review with approver groups": requestOfOther("/review", used, byGroup),
  "GET /access/authority_keys/": async () => ({ path: "/access/authority_keys/" }),
  "POST /access/authority_keys/": async (world) => ({
    path: "/access/authority_keys/",
    body: { kind: "ssh", name: `quokka-${world.next()}` },
  }),
  "GET /access/authority_keys/{authority_key_id}": async (world) => {
    const { body } = await world.admin.call("POST", "/access/authority_keys/", {
      kind: "ssh",
      name: `quokka-${world.next()}`,
    });
    return { path: `/access/authority_keys/${body.id}` };
  },
  "GET /certificates/ of others": async (world) => {
    await insertCertificate(world);
    return { path: "/certificates/", shows: elsewhere };
  },
  "POST /certificates/": async (world, role) => ({
    path: "/certificates/",
    body: { csr: newCertificateRequest() },
    // A certificate requires a new sign-in.
    ...(role === "nobody" ? {} : { as: await world.signIn(role) }),
  }),
  "DELETE /certificates/{serial} of somebody else": async (world) => ({
    path: `/certificates/${await insertCertificate(world)}`,
  }),
  "GET /sign_ins/ of others": async (world) => {
    await insertToken(world);
    return { path: "/sign_ins/", shows: elsewhere };
  },
  "DELETE /sign_ins/ of somebody else": async () => ({ path: `/sign_ins/?user=${elsewhere}` }),
  "DELETE /sign_ins/{sign_in_id} of somebody else": pathOf(insertToken, "/sign_ins/"),
  "GET /access/leases/ of others": async (world) => {
    await insertLease(world, elsewhere);
    return { path: "/access/leases/", shows: elsewhere };
  },
  "POST /access/leases/": async (world) => ({
    path: "/access/leases/",
    body: { role: (await makeRole(world)).slug },
  }),
  "DELETE /access/leases/ of somebody else": async () => ({
    path: `/access/leases/?user=${elsewhere}`,
  }),
  "GET /access/leases/{lease_id} of somebody else": pathOf(
    (world) => insertLease(world, elsewhere),
    "/access/leases/",
  ),
  "GET /access/leases/{lease_id}/explain of somebody else": pathOf(
    (world) => insertLease(world, elsewhere),
    "/access/leases/",
    "/explain",
  ),
  "DELETE /access/leases/{lease_id} of somebody else": pathOf(
    (world) => insertLease(world, elsewhere),
    "/access/leases/",
  ),
  "POST /access/leases/{lease_id}/renew of somebody else": pathOf(
    (world) => insertLease(world, elsewhere),
    "/access/leases/",
    "/renew",
  ),
  "GET /api/v1/get_roles": ofAws((shows) => ({ path: "/api/v1/get_roles?all=true", shows })),
  "GET /api/v1/get_roles of other groups": ofAws(
    (shows) => ({ path: "/api/v1/get_roles?all=true", shows }),
    hiddenFrom,
  ),
  "GET /api/v2/get_roles": ofAws((shows) => ({ path: "/api/v2/get_roles?all=true", shows })),
  "POST /api/v1/get_credentials": ofAws((arn) => ({
    path: "/api/v1/get_credentials",
    body: { requested_role: arn },
  })),
  "POST /api/v1/get_credentials of other groups": ofAws(
    (arn) => ({ path: "/api/v1/get_credentials", body: { requested_role: arn } }),
    hiddenFrom,
  ),
  "GET /api/v2/get_resource_url": ofAws((arn) => ({ path: `/api/v2/get_resource_url?arn=${arn}` })),
  "GET /api/v2/get_resource_url of other groups": ofAws(
    (arn) => ({ path: `/api/v2/get_resource_url?arn=${arn}` }),
    hiddenFrom,
  ),
  "GET /api/v1/policies/typeahead": ofAws((shows) => ({
    path: "/api/v1/policies/typeahead?resource=iam_arn&search=quokka&limit=5000",
    shows,
  })),
};
