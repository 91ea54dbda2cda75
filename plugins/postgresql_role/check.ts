import type { RoleFacts } from "../../core/plugin.ts";
import { connected, identifier, targetOf, versionOf } from "./target.ts";

export async function check({
  role,
  signal,
}: {
  role: RoleFacts;
  signal: AbortSignal;
}): Promise<{ problem: string; fix?: string }[]> {
  const target = targetOf(role);
  const { user, parents } = target;
  const broker = identifier(user);
  return await connected(target, signal, async (sql) => {
    const problems: { problem: string; fix?: string }[] = [];
    const [me] = await sql<[{ super: boolean; create: boolean; inherit: boolean; readonly: string }]>`
      select rolsuper as super, rolcreaterole as create, rolinherit as inherit,
        current_setting('transaction_read_only') as readonly
      from pg_roles where rolname = current_user`;
    if (me.readonly === "on")
      problems.push({ problem: "The target is read-only: set the host of its primary" });
    if ((await versionOf(sql)) < 150_000)
      problems.push({
        problem: "The target is older than PostgreSQL 15, which is the oldest supported version",
      });
    if (!me.inherit && !me.super)
      problems.push({
        problem: `The broker ${user} does not inherit rights, so it cannot drop what a lease owns`,
        fix: `alter role ${broker} inherit;`,
      });
    if (me.super)
      problems.push({
        problem: `The broker ${user} is a superuser, which is more than it needs`,
        fix: `alter role ${broker} nosuperuser createrole;`,
      });
    if (!me.create && !me.super)
      problems.push({
        problem: `The broker ${user} may not create roles`,
        fix: `alter role ${broker} createrole;`,
      });
    const known = await sql<{ name: string; admin: boolean; high: boolean }[]>`
      select rolname as name, rolsuper as high,
        pg_has_role(current_user, oid, 'member with admin option') as admin
      from pg_roles where rolname in ${sql(parents)}`;
    for (const parent of parents) {
      const found = known.find(({ name }) => name === parent);
      const grant = `grant ${identifier(parent)} to ${broker} with admin option;`;
      if (!found)
        problems.push({
          problem: `There is no role ${parent}`,
          fix: `create role ${identifier(parent)} nologin; ${grant}`,
        });
      else if (found.high)
        problems.push({ problem: `${parent} is a superuser: a lease would have every right` });
      else if (!found.admin && !me.super)
        problems.push({ problem: `The broker ${user} may not grant ${parent}`, fix: grant });
    }
    const [signals] = await sql<[{ may: boolean }]>`
      select pg_has_role(current_user, 'pg_signal_backend', 'member') as may`;
    if (!signals.may)
      problems.push({
        problem: `The broker ${user} may not end sessions of others`,
        fix: `grant pg_signal_backend to ${broker};`,
      });
    return problems;
  });
}
