import { Refused } from "../../platform/errors.ts";
import {
  codeOf,
  grantToBroker,
  identifier,
  inTransaction,
  literal,
  type Role,
  type Sql,
  type Target,
  versionOf,
} from "./target.ts";

// What the role of a lease owns, and where it was granted privileges. Nothing here uses CASCADE, and DROP OWNED runs only
// for what is the lease's alone: it would revoke dependent privileges of others, and drop their policies.

/** One row of pg_shdepend: something in this database that the role owns, or that names the role. */
interface Belonging {
  classid: string;
  objid: string;
  /** `o`: owned. `a`: has privileges, or granted a membership. `r`: in a policy. `i`: initial privileges of an extension. */
  kind: "o" | "a" | "r" | "i";
  /** As in ALTER, and quoted as in SQL. */
  type: string;
  identity: string;
  /**
   * Whether other objects depend on it; for privileges, whether the role granted them further; for a policy, whether it
   * is on a table of others and names only this role.
   */
  used: boolean;
  /** Whether the heir may own it by its own privileges, or once it owns the lease's schemas. */
  ownable: boolean;
  /**
   * The schema of a table that has a foreign key to or from one of others, if the heir may not use this schema. PostgreSQL
   * checks foreign keys as the owner of a table, so the statements of others would fail.
   */
  unusable: string | null;
  /** Those who granted its privileges, except for the owner of the object. A superuser has to revoke them in their name. */
  grantors: string[];
  /** Whether the broker may act for all who granted its privileges. */
  revocable: boolean;
}

/** Why something remains, and the statement with which a person decides; empty if it may succeed later without one. */
export interface Remaining {
  what: string;
  why: string;
  command: string;
}

/** In one transaction. With their indexes, 200 tables need about 1,000 locks; a server has at least 6,400 by default. */
const batchSize = 200;
/** How many are read at once, which takes as long as reading all of them. */
const pageSize = 5000;
/** Waiting for a lock delays everybody who wants the object after us. */
const lockMilliseconds = 250;
const heirComment = "svc: owner of what leases left behind, without privileges";
/** In bytes. PostgreSQL truncates longer names. */
const longestName = 63;

/** The keyword in ALTER and DROP, where it is not the type that pg_identify_object returns. */
const keywords: Record<string, string> = {
  function: "routine",
  procedure: "routine",
  aggregate: "routine",
  "statistics object": "statistics",
  "foreign-data wrapper": "foreign data wrapper",
};
/** They may hold data, or are the types of data, and are never dropped. REASSIGN OWNED checks no privileges for them. */
const data = ["table", "view", "materialized view", "foreign table", "sequence", "type"];
/** Dropped if the heir cannot own them and nothing uses them. They hold no data. */
const droppable = [
  "routine",
  "operator",
  "operator class",
  "operator family",
  "collation",
  "conversion",
  "statistics",
  "text search configuration",
  "text search dictionary",
  "publication",
  "server",
  "schema",
];

/** The name of the role that gets the objects of ended leases. */
export function heirNameOf({ user }: Target): string {
  const suffix = "_leftovers";
  const start = Buffer.from(user).subarray(0, longestName - suffix.length);
  return `${start.toString().replace(/\ufffd$/, "")}${suffix}`;
}

/**
 * The role that gets the objects of ended leases. Each broker has one, created on first use.
 *
 * @throws Refused when a role of this name exists that svc did not create
 */
export async function heirOf(sql: Sql, target: Target): Promise<string> {
  const heir = heirNameOf(target);
  const find = async (there: Sql) => {
    const [found] = await there<{ comment: string | null; inherit: boolean }[]>`
      select shobj_description(oid, 'pg_authid') as comment, rolinherit as inherit from pg_roles where rolname = ${heir}`;
    if (found && found.comment !== heirComment)
      throw new Refused(`The target has a role ${heir} that svc did not create: rename that role`);
    return found;
  };
  const found = await find(sql);
  // Earlier releases created it without INHERIT, which `handOver` needs on PostgreSQL 15.
  if (found && !found.inherit) await sql.unsafe(`alter role ${identifier(heir)} inherit`);
  if (found) return heir;
  try {
    await inTransaction(sql, async (tx) => {
      await tx.unsafe(`create role ${identifier(heir)} nologin`);
      await tx.unsafe(`comment on role ${identifier(heir)} is ${literal(heirComment)}`);
      await grantToBroker(tx, target, heir);
    });
  } catch (error) {
    // No lock, because users could hold it. If a concurrent revocation created the role, use that.
    const isTaken = ["42710", "23505"].includes(codeOf(error));
    if (!isTaken || !(await find(sql))) throw error;
  }
  return heir;
}

/** The privileges on an object, with its owner. */
const privileges = `(
    select relacl as acl, relowner as owner from pg_class where s.classid = 'pg_class'::regclass and oid = s.objid
    union all select attacl, relowner from pg_attribute join pg_class c on c.oid = attrelid
      where s.classid = 'pg_class'::regclass and attrelid = s.objid and attacl is not null
    ${[
      ["pg_proc", "proacl", "proowner"],
      ["pg_namespace", "nspacl", "nspowner"],
      ["pg_database", "datacl", "datdba"],
      ["pg_type", "typacl", "typowner"],
      ["pg_language", "lanacl", "lanowner"],
      ["pg_foreign_data_wrapper", "fdwacl", "fdwowner"],
      ["pg_foreign_server", "srvacl", "srvowner"],
      ["pg_largeobject_metadata", "lomacl", "lomowner", "pg_largeobject"],
      ["pg_tablespace", "spcacl", "spcowner"],
      ["pg_parameter_acl", "paracl", "10"],
    ]
      .map(
        ([table, acl, owner, catalog = table]) =>
          `union all select ${acl}, ${owner} from ${table} where s.classid = '${catalog}'::regclass and oid = s.objid`,
      )
      .join(" ")}) acls`;

const place = (one: Belonging) => `${one.classid}/${one.objid}`;

const schemaOfIt = "to_regnamespace(i.schema)::oid";
/** Whether the heir has a privilege. It has those of PUBLIC, also before it exists. */
const heirMay = (inquiry: string, on: string, privilege: string) =>
  `coalesce(${inquiry}(h.oid, ${on}, '${privilege}'), ${inquiry}('public', ${on}, '${privilege}'), false)`;

/** Up to `limit` belongings after the given one, schemas first, because the heir may own objects in its own schemas. */
async function belongings(
  sql: Sql,
  { oid }: Role,
  heir: string,
  after: Belonging | undefined,
  limit: number,
): Promise<Belonging[]> {
  const isSchema = (classid: string) => (classid === "2615" ? "false" : "true");
  const key = after ? `(${isSchema(after.classid)}, ${after.classid}, ${after.objid})` : "(false, 0, 0)";
  const rows = await sql.unsafe<Belonging[]>(
    `
    select s.classid::text, s.objid::text, s.kind, i.type, i.identity,
      case s.kind
        when 'o' then exists (
          select from pg_depend d where d.refclassid = s.classid and d.refobjid = s.objid and d.deptype = 'n'
            -- Code of the lease that uses other code of it is dropped first.
            and (d.classid in ('pg_class'::regclass, 'pg_type'::regclass) or not exists (
              select from pg_shdepend o where o.classid = d.classid and o.objid = d.objid
                and o.refclassid = 'pg_authid'::regclass and o.refobjid = ROLE and o.deptype = 'o')))
        when 'a' then exists (select from ${privileges}, aclexplode(acl) g where g.grantor = ROLE)
        else exists (select from pg_policy p join pg_class c on c.oid = p.polrelid where s.classid = 'pg_policy'::regclass
          and p.oid = s.objid and cardinality(p.polroles) = 1 and c.relowner not in (ROLE, coalesce(h.oid, 0))) end as used,
      case i.type when 'publication' then ${heirMay("has_database_privilege", "current_database()", "CREATE")}
        when 'server' then ${heirMay("has_foreign_data_wrapper_privilege", "(select srvfdw from pg_foreign_server where oid = s.objid)", "USAGE")}
        else i.schema is null or ${heirMay("has_schema_privilege", schemaOfIt, "CREATE")} end
        or exists (select from pg_namespace where oid = to_regnamespace(i.schema) and nspowner = ROLE) as ownable,
      case when s.kind = 'o' and s.classid = 'pg_class'::regclass and not ${heirMay("has_schema_privilege", schemaOfIt, "USAGE")} and exists (
        select from pg_depend d join pg_constraint k on k.oid = d.objid and k.contype = 'f'
          join pg_class o on o.oid in (k.conrelid, k.confrelid) and o.relowner not in (ROLE, coalesce(h.oid, 0))
        where d.classid = 'pg_constraint'::regclass and d.refclassid = s.classid and d.refobjid = s.objid
          and not exists (select from pg_namespace where oid = to_regnamespace(i.schema) and nspowner = ROLE))
        then i.schema end as unusable,
      case when s.kind = 'a' then array(select distinct pg_get_userbyid(g.grantor)::text from ${privileges},
        aclexplode(acl) g where g.grantee = ROLE and g.grantor <> acls.owner order by 1) else '{}' end as grantors,
      s.kind <> 'a' or not exists (select from ${privileges}, aclexplode(acl) g
        where g.grantee = ROLE and not pg_has_role(current_user, g.grantor, 'usage')) as revocable
    from (
      select classid, objid, deptype::text as kind from pg_shdepend
      where refclassid = 'pg_authid'::regclass and refobjid = ROLE
        and dbid in (0, (select oid from pg_database where datname = current_database()))
        and (classid <> 'pg_namespace'::regclass, classid::int8, objid::int8) > ${key}
        -- A sequence follows the table of its column.
        and not (classid = 'pg_class'::regclass and exists (select from pg_depend o where o.classid = pg_shdepend.classid
          and o.objid = pg_shdepend.objid and o.refclassid = 'pg_class'::regclass and o.deptype in ('a', 'i')
          and (select relkind from pg_class where oid = o.objid) = 'S'))
      group by classid, objid, deptype
      order by classid <> 'pg_namespace'::regclass, classid, objid limit ${limit}) s
    cross join lateral pg_identify_object(s.classid, s.objid, 0) i
    left join pg_roles h on h.rolname = ${literal(heir)}
    where i.identity is not null`.replaceAll("ROLE", oid),
  );
  return rows.map((row) => ({ ...row, type: keywords[row.type] ?? row.type }));
}

/**
 * Hands over or drops what the role has in this database, in transactions of `batchSize`, and revokes its privileges.
 *
 * @param known the parents that the broker may grant
 * @returns what remains, for which the role has to stay
 */
export async function clearDatabase(
  sql: Sql,
  role: Role,
  { heir, parents, signal }: { heir: string; parents: string[]; signal: AbortSignal },
): Promise<Remaining[]> {
  const errors = new Map<string, Error>();
  for (let before = Number.POSITIVE_INFINITY; ;) {
    const left = await count(sql, role);
    // Objects may depend on each other, so passes are repeated as long as they help.
    if (left === 0 || left >= before) break;
    before = left;
    for (let last: Belonging | undefined; ;) {
      const page = await belongings(sql, role, heir, last, pageSize);
      for (let at = 0; at < page.length; at += batchSize) {
        signal.throwIfAborted();
        await giveUp(sql, role, { heir, parents }, page.slice(at, at + batchSize), errors);
      }
      last = page.at(-1);
      if (page.length < pageSize) break;
    }
  }
  let blocking = await blockingIn(sql, role, heir);
  const isStuck = blocking.length > batchSize || blocking.some(({ unusable }) => unusable !== null);
  if (!isStuck && blocking.some(({ kind }) => kind === "o")) {
    // For extensions, which have no ALTER ... OWNER TO, and for tables in schemas where no parent may create either.
    const all = `reassign owned by ${identifier(role.name)} to ${identifier(heir)}`;
    await sql.unsafe(`${limit}; ${all}`).catch(refusal);
    blocking = await blockingIn(sql, role, heir);
  }
  if (blocking.length === 0 && (await count(sql, role)) > 0)
    await sql.unsafe(`${limit}; drop owned by ${identifier(role.name)}`).catch(refusal);
  const remaining =
    blocking.length > 0 ? blocking : await belongings(sql, role, heir, undefined, batchSize + 1);
  const [{ database }] = await sql<[{ database: string }]>`select current_database() as database`;
  const described: Remaining[] = [];
  for (const one of remaining) {
    const error = errors.get(place(one));
    const holder = codeOf(error) === "55P03" ? await holderOf(sql, one) : undefined;
    described.push(describe(one, { role, heir, database, error, holder }));
  }
  return described;
}

/** What DROP OWNED must not reach, up to one more than `batchSize`. */
async function blockingIn(sql: Sql, role: Role, heir: string): Promise<Belonging[]> {
  const blocking: Belonging[] = [];
  for (let last: Belonging | undefined; ;) {
    const page = await belongings(sql, role, heir, last, pageSize);
    blocking.push(...page.filter((one) => !isOnlyTheirs(one)));
    last = page.at(-1);
    if (page.length < pageSize || blocking.length > batchSize) return blocking.slice(0, batchSize + 1);
  }
}

interface Holder {
  gid: string | null;
  who: string;
}

/** Who has locked an object, if the lock is still held. */
async function holderOf(sql: Sql, { classid, objid }: Belonging): Promise<Holder | undefined> {
  const [holder] = await sql<Holder[]>`
    select p.gid, coalesce(format('the prepared transaction %L of %s', p.gid, p.owner),
      format('the session %s of %s', a.pid, a.usename)) as who
    from pg_locks h left join pg_locks x on h.pid is null and x.pid is null and x.locktype = 'transactionid'
      and x.virtualtransaction = h.virtualtransaction
    left join pg_prepared_xacts p on p.transaction = x.transactionid left join pg_stat_activity a on a.pid = h.pid
    where h.granted and h.database = (select oid from pg_database where datname = current_database())
      and coalesce(h.relation, h.objid) = ${objid}::text::oid
      and coalesce(h.classid, 'pg_class'::regclass) = ${classid}::text::oid
    order by p.gid limit 1`;
  return holder;
}

/** Whether DROP OWNED would remove it without an effect on others: see `used`. */
const isOnlyTheirs = ({ kind, type, used }: Belonging) =>
  ["default acl", "user mapping"].includes(type) || kind === "i" || (kind === "r" && !used);

/** Says why something remains, and what decides. */
function describe(
  one: Belonging,
  context: {
    role: Role;
    heir: string;
    database: string;
    error: Error | undefined;
    holder: Holder | undefined;
  },
): Remaining {
  const { kind, type, identity } = one;
  const { role, heir, database, error, holder } = context;
  // The first of the dependent objects: "view report depends on function f()".
  const detail = (error as { detail?: string } | undefined)?.detail?.split("\n", 1)[0];
  const dependent = codeOf(error) === "2BP01" ? (detail ?? "others depend on it") : undefined;
  const why = dependent ?? "";
  const at = `in ${database}`;
  if (codeOf(error) === "55P03") {
    const gid = holder?.gid ?? null;
    return {
      what: `${type} ${identity} ${at}`,
      why: `${holder?.who ?? "another transaction"} has locked it`,
      command: gid === null ? "" : `rollback prepared ${literal(gid)};`,
    };
  }
  if (type === "role membership") {
    const [, member = "", group = ""] = /^membership of role (.+) in role (.+)$/s.exec(identity) ?? [];
    const command = `revoke ${identifier(group)} from ${identifier(member)} granted by ${identifier(role.name)};`;
    return { what: `the ${identity}`, why: "it granted it", command };
  }
  if (kind === "r")
    return {
      what: `${type} ${identity} ${at}`,
      why: "it applies to this role only",
      command: `drop ${type} ${identity};`,
    };
  if (kind === "a") {
    const revoke = `${revokeOf(one, role)}${one.used ? " cascade" : ""};`;
    const inTheirName = one.grantors.map(
      (grantor) => `set role ${identifier(grantor)}; ${revoke} reset role;`,
    );
    return {
      what: `its privileges on ${type} ${identity} ${at}`,
      why: why || (one.used ? "it granted them further" : "the broker cannot revoke them"),
      command: [revoke, ...inTheirName].join(" "),
    };
  }
  if (one.unusable !== null)
    return {
      what: `${type} ${identity} ${at}`,
      why: `it has a foreign key to or from a table of others, whose check needs USAGE on ${one.unusable}`,
      command: `grant usage on schema ${one.unusable} to ${identifier(heir)};`,
    };
  const command = unalterable.includes(type)
    ? `reassign owned by ${identifier(role.name)} to ${identifier(heir)};`
    : `alter ${type} ${identity} owner to ${identifier(heir)};`;
  return { what: `${type} ${identity} ${at}`, why: why || "the broker cannot hand it over", command };
}

/** Describes what `clearDatabase` would do, for up to `batchSize` objects. */
export async function explainDatabase(sql: Sql, role: Role, heir: string): Promise<string[]> {
  const [{ database }] = await sql<[{ database: string }]>`select current_database() as database`;
  const all = await belongings(sql, role, heir, undefined, batchSize);
  return all.map((one) => {
    const { kind, type, identity, used, ownable } = one;
    const what = `${type} ${identity} in ${database}`;
    const decides = "stays, and the role with it, until a person decides";
    if (kind === "a" && type !== "default acl")
      return used || type === "role membership"
        ? `${what}: the lease granted its privileges to others, so it ${decides}`
        : one.revocable
          ? `${what}: the lease's privileges are revoked`
          : `${what}: the broker cannot revoke the lease's privileges, so it ${decides}`;
    if (kind === "r" && !used) return `${what}: no longer applies to the role`;
    if (isOnlyTheirs(one)) return `${what}: is dropped`;
    if (kind === "r") return `${what}: applies to this role only, so it ${decides}`;
    if (one.unusable !== null)
      return `${what}: has a foreign key to or from a table of others, so it ${decides}: grant usage on schema ${one.unusable} to ${identifier(heir)}`;
    if (ownable || data.includes(type) || unalterable.includes(type)) return `${what}: goes to ${heir}`;
    return used ? `${what}: is used, so it ${decides}` : `${what}: is dropped`;
  });
}

async function count(sql: Sql, { oid }: Role): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from pg_shdepend where refclassid = 'pg_authid'::regclass
      and refobjid = ${oid}::text::oid and dbid in (0, (select oid from pg_database where datname = current_database()))`;
  return row.count;
}

/** Returns the refusal of a statement, which does not end the attempt, and throws other errors. */
function refusal(error: unknown): Error {
  // Dependent objects exist, missing privileges, not supported for this object, does not exist (any more), a lock
  // timeout, or of another kind than expected.
  if (/^(2BP01|42|0A000|0LP01|55P03|55006|23505|XX000)/.test(codeOf(error))) return error as Error;
  throw error;
}

async function giveUp(
  sql: Sql,
  role: Role,
  { heir, parents }: { heir: string; parents: string[] },
  batch: Belonging[],
  errors: Map<string, Error>,
): Promise<void> {
  const to = identifier(heir);
  const owned = batch.filter(({ kind }) => kind === "o");
  const alter = ({ type, identity }: Belonging) => `alter ${type} ${identity} owner to ${to}`;
  const isData = ({ type }: Belonging) => data.includes(type);
  const isCode = ({ type }: Belonging) => !isData({ type } as Belonging) && !unalterable.includes(type);
  // The owner of a table must be able to create tables in its schema when it becomes the owner. So the heir is a member of
  // the parents in this transaction, which nobody else can see.
  const options = (await versionOf(sql)) >= 160_000 ? " with inherit true, set false" : "";
  const granted = parents.map(identifier).join(", ");
  const [join, leave] =
    parents.length === 0
      ? ["", ""]
      : [`grant ${granted} to ${to}${options}; `, `; revoke ${granted} from ${to}`];
  const note = (failed: [Belonging, Error][]) => {
    for (const [one, error] of failed) errors.set(place(one), error);
    return failed.map(([one]) => one);
  };
  note(
    await attempt(
      sql,
      owned.filter((one) => isData(one) && one.unusable === null),
      (all) => `${join}${limit}; ${all.map(alter).join("; ")}${leave}`,
    ),
  );
  const code = owned.filter(isCode);
  const ownable = code.filter((one) => one.ownable);
  const refused = note(await attempt(sql, ownable, (all) => `${limit}; ${all.map(alter).join("; ")}`));
  const kept = [...code.filter((one) => !one.ownable), ...refused];
  const drop = ({ type, identity }: Belonging) => `drop ${type} ${identity} restrict`;
  const useless = kept.filter(({ type }) => droppable.includes(type));
  note(await attempt(sql, useless, (all) => `${limit}; ${all.map(drop).join("; ")}`));
  const privileges = batch.filter(({ kind, type }) => kind === "a" && !ungrantable.includes(type));
  const revoke = (one: Belonging) => `${revokeOf(one, role)} restrict`;
  note(await attempt(sql, privileges, (all) => `${limit}; ${all.map(revoke).join("; ")}`));
}

const limit = `set local lock_timeout = ${lockMilliseconds}`;
/** Types without ALTER ... OWNER TO, of which the lease alone has the use. DROP OWNED drops the last two. */
const unalterable = ["extension", "default acl", "user mapping"];
const ungrantable = ["role membership", "default acl"];

/** What GRANT and REVOKE call an object. */
function grantable(type: string): string {
  if (data.includes(type) && type !== "type") return "table";
  return { server: "foreign server", "parameter ACL": "parameter" }[type] ?? type;
}

const revokeOf = ({ type, identity }: Belonging, { name }: Role) =>
  `revoke all on ${grantable(type)} ${identity} from ${identifier(name)}`;

/** Runs the statements of all items in one transaction or, if that fails, of each half. @returns the items that failed */
async function attempt(
  sql: Sql,
  items: Belonging[],
  statementsOf: (items: Belonging[]) => string,
): Promise<[Belonging, Error][]> {
  if (items.length === 0) return [];
  try {
    await sql.unsafe(statementsOf(items));
    return [];
  } catch (error) {
    const reason = refusal(error);
    if (items.length === 1) return [[items[0]!, reason]];
  }
  const middle = items.length >> 1;
  return [
    ...(await attempt(sql, items.slice(0, middle), statementsOf)),
    ...(await attempt(sql, items.slice(middle), statementsOf)),
  ];
}
