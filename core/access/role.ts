import { and, arrayOverlaps, eq, getTableColumns, isNull, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessRole } from "../../drizzle/schema/index.ts";
import { NotFound } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import type { RoleRow, Settings } from "./role_plugin.ts";

// An access role defines what can be requested, by whom and for how long. role_change.ts creates and changes roles, and
// role_plugin.ts has their secrets.

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
  if (!role) throw actor.admin ? noSuchRole() : notRequestable();
  return role;
}

const missing = "There is no such access role";

/** For admins, who see all roles. */
export const noSuchRole = () => new NotFound(missing);
const notRequestable = () =>
  new NotFound(`${missing}, or you may not request it: svc access list shows your roles`);

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
  if (!role) throw notRequestable();
  return role;
}
