import { and, eq, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { Changed, Conflict, Forbidden, InvalidInput } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import { unlessReferredTo } from "../catalog/reference.ts";
import { unlessTaken } from "../catalog/taken.ts";
import type { Actor, Context } from "../context.ts";
import type { AppContext } from "../plugin/context.ts";
import { getRole, noSuchRole, type Role } from "./role.ts";
import { parseRole, type RoleFields } from "./role_fields.ts";
import { keepSecrets, openSecrets, type Settings } from "./role_plugin.ts";

/**
 * Creates a role. Only for admins.
 *
 * @throws Forbidden
 * @throws InvalidInput
 * @throws Conflict when the slug is taken
 */
export async function createRole(context: AppContext, actor: Actor, fields: RoleFields): Promise<Role> {
  assertAdmin(actor);
  const { db, clock } = context;
  const { values, secrets } = parseRole(context, fields, {});
  const at = clock.now();
  return db.transaction(async (tx) => {
    const disabledAt = fields.disabled ? at : null;
    await insertRole(tx, context, { ...values, disabledAt, createdAt: at, updatedAt: at }, secrets);
    await auditRole(tx, actor, at, "access_role.created", values.slug);
    return getRole({ db: tx }, actor, values.slug);
  });
}

/** Inserts a role without validating it, for the trial's fixed roles. @throws Conflict when the slug is taken */
export async function insertRole(
  tx: Transaction,
  context: { config: Pick<Context["config"], "keySecret"> },
  values: typeof accessRole.$inferInsert,
  secrets: Settings,
): Promise<void> {
  const insert = tx.insert(accessRole).values(values).returning({ id: accessRole.id });
  const taken = { access_role_slug_idx: `The access role ${values.slug} already exists` };
  const [made] = await unlessTaken(taken, insert);
  await keepSecrets(tx, context, made!.id, secrets);
}

/**
 * Replaces a role. Its leases stay active unless this disables the role.
 *
 * @throws Forbidden
 * @throws InvalidInput also for a different slug or plugin, because leases may depend on them
 * @throws NotFound
 * @throws Conflict when the role is no longer at `version`
 */
export async function updateRole(
  context: AppContext,
  actor: Actor,
  { slug, version, fields }: { slug: string; version: number; fields: RoleFields },
): Promise<Role> {
  assertAdmin(actor);
  const { db, clock } = context;
  const at = clock.now();
  return db.transaction(async (tx) => {
    const [now] = await tx.select().from(accessRole).where(eq(accessRole.slug, slug)).for("update");
    if (!now) throw noSuchRole();
    if (fields.slug !== slug)
      throw new InvalidInput("slug", "The slug of a role cannot change: create a new role");
    if (fields.plugin !== now.pluginSlug)
      throw new InvalidInput("plugin", "The plugin of a role cannot change: create a new role");
    if (now.version !== version) throw new Changed("access role", now.version);
    const parsed = parseRole(context, fields, openSecrets(context, now));
    await tx
      .update(accessRole)
      .set({
        ...parsed.values,
        disabledAt: fields.disabled ? (now.disabledAt ?? at) : null,
        version: version + 1,
        updatedAt: at,
      })
      .where(eq(accessRole.id, now.id));
    await keepSecrets(tx, context, now.id, parsed.secrets);
    await auditRole(tx, actor, at, "access_role.updated", slug);
    return getRole({ db: tx }, actor, slug);
  });
}

/**
 * Deletes a role that was never requested or issued. Any other role can only be disabled, which ends its leases: revoking
 * them needs its settings.
 *
 * @throws Forbidden
 * @throws NotFound
 * @throws Conflict
 */
export async function removeRole({ db, clock }: Context, actor: Actor, slug: string): Promise<void> {
  assertAdmin(actor);
  await db.transaction(async (tx) => {
    const alive = await tx.$count(
      accessLease,
      and(isNull(accessLease.finishedAt), eq(accessLease.roleId, idOfRole(slug))),
    );
    if (alive > 0)
      throw new Conflict(`This access role still has leases (${alive}): disable it, which ends them`);
    const [removed] = await unlessReferredTo(
      "This access role",
      tx.delete(accessRole).where(eq(accessRole.slug, slug)).returning({ id: accessRole.id }),
    );
    if (!removed) throw noSuchRole();
    await auditRole(tx, actor, clock.now(), "access_role.deleted", slug);
  });
}

const idOfRole = (slug: string) => sql`(select id from ${accessRole} where slug = ${slug})`;

async function auditRole(
  tx: Transaction,
  { user }: Actor,
  at: Date,
  action: "access_role.created" | "access_role.updated" | "access_role.deleted",
  slug: string,
): Promise<void> {
  await audit(tx, { at, actor: user, action, subject: slug });
}

function assertAdmin({ admin }: Actor): void {
  if (!admin) throw new Forbidden("Only admins can change access roles");
}
