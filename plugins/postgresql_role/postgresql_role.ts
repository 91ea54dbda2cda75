import { randomBytes } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { definePlugin, type LeaseFacts, type RoleFacts } from "../../core/plugin.ts";
import { Refused } from "../../platform/errors.ts";
import { check } from "./check.ts";
import { explain, revoke } from "./revoke.ts";
import { scramVerifier } from "./scram.ts";
import {
  commentOf,
  commentPattern,
  connected,
  findRole,
  handleOf,
  identifier,
  inTransaction,
  literal,
  lockName,
  roleSchema,
  type Sql,
  targetOf,
  versionOf,
} from "./target.ts";

// Terminology: the target is a PostgreSQL server. The broker is svc's account there, with CREATEROLE but not a superuser.
// The parents are roles with the privileges that a lease gets. A lease is a login role and a member of its parents. It has
// no direct grants, because thousands of grants would bloat the target's catalogs.
//
// The objects that a lease leaves behind go to the heir, a role without LOGIN and without privileges. If the broker or a
// parent owned them, a view, a rule, a SECURITY DEFINER function or an index expression would run with their privileges
// when others use the object. Autovacuum alone runs index expressions.
//
// The comment of a lease role names the installation of svc that created it. svc changes and drops only roles with its own
// comment: a name alone may belong to someone else, and several installations may share a target.

export default definePlugin({
  title: "PostgreSQL roles",
  slug: "postgresql-role",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Creates a PostgreSQL role for each lease, as a member of existing roles",
  configSchema: Type.Object({}),
  roleSchema,
  create: () => ({
    check: (call) => check(call),
    issue: (call) => issue(call),
    revoke: (call) => revoke(call),
    renew: (call) => renew(call),
    list: (call) => list(call),
    explain: (call) => explain(call),
  }),
});

/** The expiry of a lease by the target's clock, which may differ from ours, in a format that no setting changes. */
async function endAtTarget(sql: Sql, seconds: number): Promise<string> {
  const [end] = await sql<{ epoch: number }[]>`
    select extract(epoch from now() + make_interval(secs => ${seconds}))::float8 as epoch`;
  return literal(new Date(Math.round(end!.epoch) * 1000).toISOString());
}

async function issue({
  leaseId,
  name,
  role,
  seconds,
  signal,
}: LeaseFacts & { seconds: number; signal: AbortSignal }) {
  const target = targetOf(role);
  const password = randomBytes(24).toString("base64url");
  const verifier = await scramVerifier(password);
  const handle = await connected(target, signal, (sql) =>
    inTransaction(sql, async (tx) => {
      await lockName(tx, name);
      const until = await endAtTarget(tx, seconds);
      const parents = target.parents.map(identifier).join(", ");
      signal.throwIfAborted();
      // With SET, what the user creates could belong to a parent and outlive the lease.
      const options =
        (await versionOf(tx)) >= 160_000 ? ` with inherit true, set ${target.setRole === true}` : "";
      await tx.unsafe(
        `create role ${identifier(name)} login inherit nocreatedb nocreaterole noreplication
           connection limit ${Number(target.connectionLimit)} password ${literal(verifier)} valid until ${until};
         grant ${parents} to ${identifier(name)}${options};
         comment on role ${identifier(name)} is ${literal(commentOf(role.installation, leaseId))}`,
      );
      signal.throwIfAborted();
      return await handleOf(tx, name);
    }),
  );
  const fields: Record<string, string> = {
    engine: "postgresql",
    user: name,
    password,
    database: target.database,
    host: target.clientHost ?? target.host,
    port: String(target.clientPort ?? target.port),
    sslmode: target.sslMode,
  };
  return { kind: "database" as const, fields, handle };
}

async function renew({
  role,
  seconds,
  signal,
  ...lease
}: LeaseFacts & { handle?: string; seconds: number; signal: AbortSignal }) {
  await connected(targetOf(role), signal, (sql) =>
    inTransaction(sql, async (tx) => {
      const found = await findRole(tx, role, lease);
      if (!found) throw new Refused("The role of this lease no longer exists");
      await tx.unsafe(`alter role ${identifier(found.name)} valid until ${await endAtTarget(tx, seconds)}`);
    }),
  );
  return {};
}

/** The lease roles of this installation. */
async function list({ role, signal }: { role: RoleFacts; signal: AbortSignal }): Promise<string[]> {
  return await connected(targetOf(role), signal, async (sql) => {
    const rows = await sql<{ name: string; comment: string }[]>`
      select rolname as name, shobj_description(oid, 'pg_authid') as comment from pg_roles
      where shobj_description(oid, 'pg_authid') like 'svc %' order by rolname`;
    return rows
      .filter(({ comment }) => commentPattern.exec(comment)?.[1] === role.installation)
      .map(({ name }) => name);
  });
}
