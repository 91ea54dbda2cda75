import type { CredentialProblem, RoleFacts } from "../../core/plugin.ts";
import { rolesOf } from "./left.ts";
import { heirNameOf } from "./objects.ts";
import { connected, identifier, literal, type Sql, type Target, targetOf, versionOf } from "./target.ts";

/** Members of these roles can read or write the server's files, or run programs on it. */
const likeSuperusers = ["pg_execute_server_program", "pg_write_server_files", "pg_read_server_files"];

export async function check({
  role,
  signal,
}: {
  role: RoleFacts;
  signal: AbortSignal;
}): Promise<CredentialProblem[]> {
  const target = targetOf(role);
  const { user, parents } = target;
  const broker = identifier(user);
  return await connected(target, signal, async (sql) => {
    const problems: CredentialProblem[] = [];
    const [me] = await sql<[{ super: boolean; create: boolean; inherit: boolean; readonly: string }]>`
      select rolsuper as super, rolcreaterole as create, rolinherit as inherit,
        current_setting('transaction_read_only') as readonly
      from pg_roles where rolname = current_user`;
    if (me.readonly === "on") problems.push({ problem: "The target is read-only: set host to its primary" });
    if ((await versionOf(sql)) < 150_000)
      problems.push({
        problem: "The target is older than PostgreSQL 15, the oldest supported version",
      });
    if (!me.inherit && !me.super)
      problems.push({
        problem: `The broker ${user} does not inherit privileges, so it cannot drop objects that a lease owns`,
        fix: `alter role ${broker} inherit;`,
      });
    if (me.super)
      problems.push({
        problem: `The broker ${user} is a superuser, but needs only CREATEROLE`,
        fix: `alter role ${broker} nosuperuser createrole;`,
      });
    if (!me.create && !me.super)
      problems.push({
        problem: `The broker ${user} cannot create roles`,
        fix: `alter role ${broker} createrole;`,
      });
    const known = await sql<{ name: string; admin: boolean }[]>`
      select rolname as name, pg_has_role(current_user, oid, 'member with admin option') as admin
      from pg_roles where rolname in ${sql(parents)}`;
    for (const parent of parents) {
      const found = known.find(({ name }) => name === parent);
      const grant = `grant ${identifier(parent)} to ${broker} with admin option;`;
      if (!found)
        problems.push({
          problem: `The role ${parent} does not exist`,
          fix: `create role ${identifier(parent)} nologin; ${grant}`,
        });
      else {
        const risks = await risksOf(sql, target, parent);
        problems.push(...risks);
        if (!found.admin && !me.super && risks.every(({ warning }) => warning))
          problems.push({ problem: `The broker ${user} cannot grant ${parent}`, fix: grant });
      }
    }
    if (known.length === parents.length) problems.push(...(await checkTogether(sql, target, me.super)));
    const [signals] = await sql<[{ may: boolean }]>`
      select pg_has_role(current_user, 'pg_signal_backend', 'member') as may`;
    if (!signals.may)
      problems.push({
        problem: `The broker ${user} cannot terminate other roles' sessions`,
        fix: `grant pg_signal_backend to ${broker};`,
      });
    return problems.slice(0, 50);
  });
}

/**
 * What an attribute, a membership or an object of a parent, or of a role that it is a member of, lets a lease do beyond its
 * end. The worst prevent the use of the role, unless its setting `accept` names them.
 */
async function risksOf(sql: Sql, target: Target, parent: string): Promise<CredentialProblem[]> {
  const like = likeSuperusers.map(literal).join(", ");
  const rows = await sql.unsafe<{ risk: string; what: string; worst: boolean }[]>(`
    with theirs as (${rolesOf([parent])})
    select 'SUPERUSER' as risk, 'can act as a superuser, so a lease would have every privilege' as what, true as worst
      from theirs where rolsuper
    union select rolname, 'can act as a superuser by ' || rolname || ', so a lease would have every privilege', true
      from theirs where rolname in (${like})
    union select 'CREATEROLE', 'can create roles, so a lease could create a role that outlives it', true
      from theirs where rolcreaterole
    union select 'REPLICATION', 'can create replication slots, which outlive a lease', true from theirs where rolreplication
    union select 'ADMIN', format('can grant %s, so a lease could grant it to others', string_agg(distinct g.rolname, ', ')), true
      from theirs join pg_auth_members m on m.member = theirs.oid and m.admin_option join pg_roles g on g.oid = m.roleid
      having count(*) > 0
    union select 'EVENT TRIGGER', format('owns the event trigger %s or its function, so a lease could change what others run',
        string_agg(distinct evtname, ', ')), true
      from pg_event_trigger join pg_proc f on f.oid = evtfoid join theirs on theirs.oid in (evtowner, proowner)
      having count(*) > 0
    union select 'CREATEDB', 'can create databases, which outlive a lease', false from theirs where rolcreatedb
    union select 'BYPASSRLS', 'bypasses row-level security', false from theirs where rolbypassrls
    union select rolname, 'is a member of ' || rolname, false from theirs
      where rolname ~ '^pg_' and rolname not in (${like})
    order by worst desc, risk`);
  const accepted = (target.accept ?? "").split(",").map((one) => one.trim().toLowerCase());
  // A superuser has all of the others.
  const shown = rows.some(({ risk }) => risk === "SUPERUSER")
    ? rows.filter(({ risk }) => risk === "SUPERUSER")
    : rows;
  return shown
    .filter(({ risk }) => !accepted.includes(risk.toLowerCase()))
    .map(({ risk, what, worst }) => {
      const problem = `${parent} ${what}. To accept this, add ${risk} to the setting accept`;
      return worst ? { problem } : { problem, warning: true };
    });
}

/** What concerns all parents together: the right to connect, SET ROLE, and what ending a lease would hand over or drop. */
async function checkTogether(sql: Sql, target: Target, isSuper: boolean): Promise<CredentialProblem[]> {
  const { user, database, parents } = target;
  const problems: CredentialProblem[] = [];
  const names = parents.join(", ");
  const [facts] = await sql.unsafe<
    [{ connects: boolean; prepares: boolean; version: number; schemas: string; unusable: string }]
  >(`
    with parent as (select oid from pg_roles where rolname in (${parents.map(literal).join(", ")})),
      creatable as (select oid, nspname from pg_namespace n where nspname !~ '^pg_' and nspname <> 'information_schema'
        and exists (select from parent where has_schema_privilege(parent.oid, n.oid, 'CREATE')))
    select (select bool_or(has_database_privilege(oid, current_database(), 'CONNECT')) from parent) as connects,
      current_setting('max_prepared_transactions')::int > 0 as prepares,
      current_setting('server_version_num')::int as version,
      ${withoutHeir(target, "CREATE")} as schemas, ${withoutHeir(target, "USAGE")} as unusable`);
  if (!facts.connects)
    problems.push({
      problem: `No parent may connect to ${database}, so a lease could not log in`,
      fix: `grant connect on database ${identifier(database)} to ${identifier(parents[0]!)};`,
    });
  const hasSet = facts.version < 160_000 || target.setRole === true;
  if (facts.prepares && hasSet && !isSuper) {
    const [right, option] = facts.version < 160_000 ? ["member", ""] : ["set", " with set true"];
    const beyond = await sql.unsafe<{ rolname: string }[]>(
      `select rolname from (${rolesOf(parents)}) r where not rolsuper
        and not pg_has_role(current_user, oid, '${right}') order by rolname limit 10`,
    );
    for (const { rolname } of beyond)
      problems.push({
        problem: `The broker ${user} cannot become ${rolname}, so it could not roll back a transaction that a user prepares as ${rolname}`,
        fix: `grant ${identifier(rolname)} to ${identifier(user)}${option};`,
      });
  }
  if (hasSet)
    problems.push({
      problem:
        facts.version < 160_000
          ? `Before PostgreSQL 16, users can SET ROLE to ${names}: what they create then remains. The end of a lease lists it`
          : `With setRole, what users create after SET ROLE to ${names} remains. The end of a lease lists it`,
      warning: true,
    });
  if (facts.schemas)
    problems.push({
      problem: `At the end of a lease, its tables, types and sequences go to ${heirNameOf(target)}. Its functions and other code in ${facts.schemas} are dropped; if others use them, a person has to decide`,
      warning: true,
    });
  if (facts.unusable)
    problems.push({
      problem: `${heirNameOf(target)} may not use ${facts.unusable}: a lease whose table there has a foreign key to or from a table of others stays until it may (GRANT USAGE)`,
      warning: true,
    });
  return problems;
}

/** The schemas of `creatable` in which the heir lacks a privilege. It has those of PUBLIC, also before it exists. */
const withoutHeir = (target: Target, privilege: "CREATE" | "USAGE") => `
  (select string_agg(nspname, ', ' order by nspname) from creatable n
    where not has_schema_privilege('public', n.oid, '${privilege}')
    and not coalesce((select has_schema_privilege(oid, n.oid, '${privilege}') from pg_roles
      where rolname = ${literal(heirNameOf(target))}), false))`;
