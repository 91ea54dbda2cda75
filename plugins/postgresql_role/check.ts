import type { CredentialProblem, RoleFacts } from "../../core/plugin.ts";
import { connected, identifier, targetOf, versionOf } from "./target.ts";

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
    // A lease can become any role that its parents are members of.
    const known = await sql<{ name: string; admin: boolean; high: boolean; creates: boolean }[]>`
      select p.rolname as name, pg_has_role(current_user, p.oid, 'member with admin option') as admin,
        bool_or(r.rolsuper or r.rolname in ${sql(likeSuperusers)}) as high, bool_or(r.rolcreaterole) as creates
      from pg_roles p join pg_roles r on pg_has_role(p.oid, r.oid, 'member')
      where p.rolname in ${sql(parents)} group by p.rolname, p.oid`;
    for (const parent of parents) {
      const found = known.find(({ name }) => name === parent);
      const grant = `grant ${identifier(parent)} to ${broker} with admin option;`;
      if (!found)
        problems.push({
          problem: `The role ${parent} does not exist`,
          fix: `create role ${identifier(parent)} nologin; ${grant}`,
        });
      else if (found.high)
        problems.push({ problem: `${parent} can act as a superuser, so a lease would have every privilege` });
      else if (found.creates)
        problems.push({
          problem: `${parent} can create roles, so a lease could create a role that outlives it`,
        });
      else if (!found.admin && !me.super)
        problems.push({ problem: `The broker ${user} cannot grant ${parent}`, fix: grant });
    }
    const [signals] = await sql<[{ may: boolean }]>`
      select pg_has_role(current_user, 'pg_signal_backend', 'member') as may`;
    if (!signals.may)
      problems.push({
        problem: `The broker ${user} cannot terminate other roles' sessions`,
        fix: `grant pg_signal_backend to ${broker};`,
      });
    return problems;
  });
}
