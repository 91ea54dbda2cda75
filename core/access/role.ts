import { OptionalKind } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { and, arrayOverlaps, eq, getTableColumns, isNull, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRole, type approvals } from "../../drizzle/schema/index.ts";
import { Changed, Conflict, Forbidden, InvalidInput, NotFound } from "../../platform/errors.ts";
import { parseText } from "../../platform/text.ts";
import { audit } from "../audit.ts";
import { unlessReferredTo } from "../catalog/reference.ts";
import { unlessTaken } from "../catalog/taken.ts";
import type { Actor, Context } from "../context.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import type { PluginContext } from "../plugin/context.ts";
import { keepSecrets, openSecrets, pluginOf, type RoleRow, type Settings } from "./role_plugin.ts";

// An access role defines what can be requested, by whom and for how long. role_plugin.ts has its secrets.

/** A week. Access needed for longer is not temporary. */
export const longestSeconds = 7 * 24 * 3600;
const slugPattern = /^[a-z0-9]+(-[a-z0-9]+)*$/;
export const longestSlug = 60;
export const mostGroups = 100;

export interface RoleFields {
  slug: string;
  description: string;
  plugin: string;
  /** The settings that the plugin's `roleSchema` defines. An omitted secret keeps its value. */
  settings: Settings;
  groups: string[];
  defaultDuration: number;
  maxDuration: number;
  approval: (typeof approvals)[number];
  incidentRequired: boolean;
  breakGlass: boolean;
  disabled: boolean;
}

/** A role without its secrets. Its settings name hosts and accounts, so only admins see them. */
export type Role = Omit<RoleRow, "secrets" | "settings"> & { settings: Settings | null };

const { secrets: _, settings, ...columns } = getTableColumns(accessRole);
const columnsFor = ({ admin }: Pick<Actor, "admin">) => ({
  ...columns,
  settings: admin ? sql<Settings | null>`${settings}` : sql<Settings | null>`null::jsonb`,
});

const roles: List<"slug"> = {
  name: "access_roles",
  id: accessRole.id,
  sorts: { slug: { by: accessRole.slug, kind: "text" } },
  defaultSort: "slug",
};

/** Matches the enabled roles that one of the actor's groups may request. */
export function mayRequest({ groups }: Pick<Actor, "groups">): SQL {
  const theirs = arrayOverlaps(accessRole.groups, ["*", ...groups]);
  return and(theirs, isNull(accessRole.disabledAt))!;
}

const mayKnowRole = (actor: Actor): SQL => (actor.admin ? sql`true` : mayRequest(actor));

/** One page of the roles that the actor may request, or of all roles for admins. @throws InvalidInput */
export async function listRoles(
  { db }: Pick<Context, "db">,
  actor: Actor,
  query: ListQuery,
): Promise<{ items: Role[]; next_cursor: string | null }> {
  const page = startPage(roles, query, {});
  const rows = await db
    .select({ item: columnsFor(actor), key: page.key })
    .from(accessRole)
    .where(page.within(mayKnowRole(actor)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/** @throws NotFound also for a role that the actor may not see */
export async function getRole({ db }: Pick<Context, "db">, actor: Actor, slug: string): Promise<Role> {
  const [role] = await db
    .select(columnsFor(actor))
    .from(accessRole)
    .where(and(eq(accessRole.slug, slug), mayKnowRole(actor)));
  if (!role) throw noSuchRole();
  return role;
}

export function noSuchRole(): NotFound {
  return new NotFound(
    "There is no such access role, or you may not request it: svc access list shows your roles",
  );
}

/**
 * Creates a role. Only for admins.
 *
 * @throws Forbidden
 * @throws InvalidInput
 * @throws Conflict when the slug is taken
 */
export async function createRole(context: PluginContext, actor: Actor, fields: RoleFields): Promise<Role> {
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
  context: PluginContext,
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

/** Validates the fields and separates settings from secrets. `kept` holds the stored secrets, for those left out. */
function parseRole(context: PluginContext, fields: RoleFields, kept: Settings) {
  const { slug, groups, defaultDuration, maxDuration } = fields;
  if (slug.length > longestSlug || !slugPattern.test(slug))
    throw new InvalidInput(
      "slug",
      `The slug must be 1 to ${longestSlug} lower-case letters and digits, with single hyphens between them`,
    );
  for (const [field, seconds] of Object.entries({
    default_duration: defaultDuration,
    max_duration: maxDuration,
  }))
    if (!Number.isInteger(seconds) || seconds < 60 || seconds > longestSeconds)
      throw new InvalidInput(field, `The field ${field} must be from 60 to ${longestSeconds} seconds`);
  if (defaultDuration > maxDuration)
    throw new InvalidInput("default_duration", "The default duration exceeds max_duration");
  if (fields.breakGlass && fields.approval === "none")
    throw new InvalidInput("break_glass", "Break-glass access requires an approval other than none");
  if (fields.approval === "commander" && !fields.incidentRequired)
    throw new InvalidInput("incident_required", "Approval by the commander requires incident_required");
  for (const group of groups) parseText("groups", group, 200);
  const plugin = pluginOf(context, fields.plugin);
  const values: Settings = {};
  const secrets: Settings = {};
  const wanted = new Map(Object.entries(fields.settings));
  for (const { key, schema, about, secret } of plugin.roleSettings ?? []) {
    const field = `settings.${key}`;
    const value = wanted.get(key) ?? (secret ? kept[key] : undefined) ?? (schema.default as undefined);
    wanted.delete(key);
    if (value === undefined) {
      if (OptionalKind in schema) continue;
      throw new InvalidInput(field, `The field ${field} is missing: ${about}`);
    }
    if (typeof value === "string") parseText(field, value, 20_000);
    if (!Value.Check(schema, value)) throw new InvalidInput(field, `The field ${field} is invalid: ${about}`);
    (secret ? secrets : values)[key] = value;
  }
  for (const key of wanted.keys())
    throw new InvalidInput("settings", `The plugin ${plugin.slug} has no setting named ${key.slice(0, 60)}`);
  return {
    values: {
      slug,
      description: parseText("description", fields.description, 500),
      pluginSlug: plugin.slug,
      settings: values,
      groups: [...new Set(groups)],
      defaultDuration,
      maxDuration,
      approval: fields.approval,
      incidentRequired: fields.incidentRequired,
      breakGlass: fields.breakGlass,
    },
    secrets,
  };
}

/** Reads a role and locks it until the transaction ends. @throws NotFound unless the actor may request it */
export async function requestableRole(
  db: Database | Transaction,
  actor: Actor,
  slug: string,
): Promise<RoleRow> {
  const [role] = await db
    .select()
    .from(accessRole)
    .where(and(eq(accessRole.slug, slug), mayRequest(actor)))
    .for("share");
  if (!role) throw noSuchRole();
  return role;
}
