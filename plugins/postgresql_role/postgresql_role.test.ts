import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import type { LeaseFacts, RoleFacts } from "../../core/plugin.ts";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { startDebianPostgres } from "../../tests/support/database/debian_postgres.ts";
import { startReplicas } from "../../tests/support/database/replicas.ts";
import { type AccessTarget, messageOf, startAccessTarget } from "../../tests/support/domain/access_target.ts";
import { listen } from "../../tests/support/listen.ts";
import { until, within } from "../../tests/support/process/until.ts";
import postgresqlRole from "./postgresql_role.ts";

const plugin = await postgresqlRole.create({}, {} as never);
const never = new AbortController().signal;
const installation = "5eed5eed5eed";
let made = 0;

/** The facts of a lease of one hour. */
function factsFor(target: AccessTarget, settings: object = {}) {
  const leaseId = ++made;
  const role: RoleFacts = { slug: "shop", installation, settings: { ...target.settings, ...settings } };
  const lease: LeaseFacts = { leaseId, name: `svc_alice_${process.pid}_${leaseId}`, role };
  const call = { ...lease, key: lease.name, signal: never, seconds: 3600 };
  return { ...call, user: "alice@example.com", expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
}

for (const [version, start] of [
  ["15 of Debian", startDebianPostgres],
  ["18", async () => undefined],
] as const)
  describe(`PostgreSQL ${version}`, () => {
    let debian: Awaited<ReturnType<typeof startDebianPostgres>> | undefined;
    let target: AccessTarget;
    let second: Sql;
    beforeAll(async () => {
      debian = await start();
      target = await startAccessTarget(debian?.url);
      const name = `${target.parent} "second" db`;
      await target.sql.unsafe(`create database ${quoted(name)}`);
      const url = new URL(target.url);
      url.pathname = `/${encodeURIComponent(name)}`;
      second = openSql(url.href, { max: 1 });
      await second.unsafe(`grant create on schema public to ${target.parent}`);
    });
    afterAll(async () => {
      const [{ name }] = await second<[{ name: string }]>`select current_database() as name`;
      await second.end();
      await target.sql.unsafe(`drop database ${quoted(name)} with (force)`);
      await target[Symbol.asyncDispose]();
      await debian?.stop();
    });

    const issue = async (settings: object = {}) => {
      const facts = factsFor(target, settings);
      const { fields } = await plugin.issue(facts);
      return { ...facts, fields };
    };
    const exists = async (name: string) =>
      (await target.sql`select 1 from pg_roles where rolname = ${name}`).length > 0;
    const sessions = async (name: string) =>
      (await target.sql`select 1 from pg_stat_activity where usename = ${name}`).length;

    const problemsOf = async (facts: Parameters<typeof plugin.check>[0]) =>
      (await plugin.check(facts)).filter(({ warning }) => !warning);

    test("the documented broker passes the check", async () => {
      expect(await problemsOf(factsFor(target))).toEqual([]);
    });

    test("the check reports every missing privilege, and its fixes work", async () => {
      const { sql, settings } = target;
      const [broker, parent] = [`Bro"ker ${version}`, `Pa'rent "of" ${version}`];
      await sql.unsafe(`create role ${quoted(broker)} login noinherit password 'secret'`);
      const facts = () => factsFor(target, { user: broker, password: "secret", parents: parent });
      const problems = await problemsOf(facts());
      expect(problems.map(({ problem }) => problem)).toEqual([
        `The broker ${broker} does not inherit privileges, so it cannot drop objects that a lease owns`,
        `The broker ${broker} cannot create roles`,
        `The role ${parent} does not exist`,
        `The broker ${broker} cannot terminate other roles' sessions`,
      ]);
      for (const { fix } of problems) await sql.unsafe(fix!);
      expect(await problemsOf(facts())).toEqual([]);
      const lease = { ...facts(), settings };
      const { fields } = await plugin.issue(lease);
      expect(fields.user).toBe(lease.name);
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      await sql.unsafe(
        `drop role ${quoted(parent)}; drop owned by ${quoted(broker)}; drop role ${quoted(broker)}`,
      );
    });

    test("the check reports parents that would make a lease too powerful", async () => {
      const { sql } = target;
      const [top, indirect, maker] = ["top", "indirect", "maker"].map((name) => `${name}_${target.parent}`);
      await sql.unsafe(`create role ${top} superuser; create role ${indirect}; create role ${maker} createrole;
        grant pg_write_server_files to ${indirect}; grant ${maker}, ${indirect} to ${target.broker} with admin option`);
      const risksOf = async (parents: string) =>
        (await problemsOf(factsFor(target, { parents }))).map(({ problem }) => problem);
      const low = `low_${target.parent}`;
      for (const [above, problem] of [
        [top, "can act as a superuser"],
        [indirect, "can act as a superuser"],
        [maker, "can create roles"],
      ] as const) {
        expect(await risksOf(above!)).toEqual([expect.stringContaining(`${above} ${problem}`)]);
        await sql.unsafe(
          `create role ${low}; grant ${above} to ${low}; grant ${low} to ${target.broker} with admin option`,
        );
        expect(await risksOf(low)).toEqual([expect.stringContaining(`${low} ${problem}`)]);
        await sql.unsafe(`drop role ${low}`);
      }
      await sql.unsafe(`drop role ${top}, ${indirect}, ${maker}`);
    });

    test.each([
      ["REPLICATION", "alter role ROLE replication", true],
      ["ADMIN", "create role team; grant team to ROLE with admin option", true],
      [
        "EVENT TRIGGER",
        `create function f() returns event_trigger language plpgsql as 'begin end'; alter function f() owner to ROLE;
         create event trigger on_drop on sql_drop execute function f()`,
        true,
      ],
      ["pg_read_server_files", "grant pg_read_server_files to ROLE", true],
      ["SUPERUSER", "alter role ROLE superuser", true],
      ["CREATEROLE", "alter role ROLE createrole", true],
      ["CREATEDB", "alter role ROLE createdb", false],
      ["BYPASSRLS", "alter role ROLE bypassrls", false],
      ["pg_read_all_data", "grant pg_read_all_data to ROLE", false],
    ])("the check names %s of a parent, unless the role accepts it", async (risk, give, isRefused) => {
      const { sql, broker } = target;
      const parent = `low_${target.parent}`;
      // Directly, and through a role that it is a member of.
      for (const high of [parent, `high_${target.parent}`]) {
        await sql.unsafe(`create role ${parent}; grant ${parent} to ${broker} with admin option`);
        if (high !== parent) await sql.unsafe(`create role ${high}; grant ${high} to ${parent}`);
        await sql.unsafe(give.replaceAll("ROLE", high));
        const named = async (settings: object) =>
          (await plugin.check(factsFor(target, { parents: parent, ...settings }))).filter(({ problem }) =>
            problem.endsWith(`add ${risk} to the setting accept`),
          );
        expect(await named({})).toMatchObject([isRefused ? {} : { warning: true }]);
        expect((await named({}))[0]!.warning).toBe(isRefused ? undefined : true);
        expect(await named({ accept: `CREATE, ${risk.toLowerCase()}` })).toEqual([]);
        await sql.unsafe(`drop event trigger if exists on_drop; drop function if exists f;
          drop owned by ${high}; drop role ${high}; drop role if exists ${parent}; drop role if exists team`);
      }
    });

    test("the check says that no parent may connect, what SET ROLE leaves, and what the end drops", async () => {
      const { sql, parent, broker } = target;
      const { database } = target.settings;
      const texts = async (settings = {}) =>
        (await plugin.check(factsFor(target, settings))).map(({ problem }) => problem);
      const setRole = expect.stringContaining("The end of a lease lists it");
      const drops = expect.stringContaining(`and other code in public are dropped`);
      const isOld = version !== "18";
      expect(await texts()).toEqual(isOld ? [setRole, drops] : [drops]);
      expect(await texts({ setRole: true })).toEqual([setRole, drops]);
      await sql.unsafe(`revoke connect on database "${database}" from public;
        grant connect on database "${database}" to ${broker}`);
      const problems = await problemsOf(factsFor(target));
      expect(problems).toMatchObject([
        { problem: `No parent may connect to ${database}, so a lease could not log in` },
      ]);
      await sql.unsafe(problems[0]!.fix!);
      expect(await problemsOf(factsFor(target))).toEqual([]);
      await sql.unsafe(`grant connect on database "${database}" to public;
        revoke connect on database "${database}" from ${parent}, ${broker}`);
    });

    test("the check says in which schemas a lease's foreign keys would keep it", async () => {
      const { sql, parent } = target;
      const keep = async () =>
        (await plugin.check(factsFor(target)))
          .map(({ problem }) => problem)
          .filter((one) => one.includes("foreign key"));
      expect(await keep()).toEqual([]);
      await sql.unsafe(`create schema app; grant usage, create on schema app to ${parent}`);
      expect(await keep()).toEqual([expect.stringContaining("_leftovers may not use app: ")]);
      await sql.unsafe("grant usage on schema app to public");
      expect(await keep()).toEqual([]);
      await sql.unsafe("drop schema app");
    });

    test("the check refuses a role whose prepared transactions the broker could not roll back", async () => {
      const { sql, broker } = target;
      const [parent, beyond] = [`low_${target.parent}`, `beyond_${target.parent}`];
      await sql.unsafe(`create role ${beyond}; create role ${parent}; grant ${beyond} to ${parent}`);
      if (version === "18")
        await sql.unsafe(`grant ${parent} to ${broker} with admin true, inherit true, set false`);
      else await sql.unsafe(`grant ${parent} to ${broker} with admin option; alter role ${parent} noinherit`);
      const facts = factsFor(target, { parents: parent, setRole: true });
      const problems = await problemsOf(facts);
      expect(problems.map(({ fix }) => fix)).toEqual(
        version === "18"
          ? [beyond, parent].map((name) => `grant "${name}" to "${broker}" with set true;`)
          : [],
      );
      for (const { fix } of problems) await sql.unsafe(fix!);
      expect(await problemsOf(facts)).toEqual([]);
      if (version === "18") expect(await problemsOf(factsFor(target, { parents: parent }))).toEqual([]);
      await sql.unsafe(`drop role ${parent}; drop role ${beyond}`);
    });

    test("a lease has its parents' privileges and an expiry, and is listed", async () => {
      const lease = await issue();
      const client = target.open(lease.fields);
      expect(await client`select count(*)::int as n from shop`).toMatchObject([{ n: 2 }]);
      expect(await messageOf(client`delete from shop`)).toContain("permission denied");
      await client.end();
      const left = async () => {
        const [row] = await target.sql<[{ left: number; limit: number; verifier: string }]>`
          select extract(epoch from rolvaliduntil - now())::int as left, rolconnlimit as limit,
            left(rolpassword, 14) as verifier from pg_authid where rolname = ${lease.name}`;
        return row;
      };
      expect(await left()).toMatchObject({ limit: 5, verifier: "SCRAM-SHA-256$" });
      expect((await left()).left).toBeWithin(3590, 3601);
      await plugin.renew!({ ...lease, seconds: 7200 });
      expect((await left()).left).toBeWithin(7190, 7201);
      expect(await plugin.list!(lease)).toContain(lease.name);
      await plugin.revoke(lease);
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      expect(await messageOf(plugin.renew!(lease))).toBe("The role of this lease no longer exists");
    });

    test("revoking ends sessions under SET ROLE, in transactions, and after a password change", async () => {
      const lease = await issue({ setRole: true });
      const clients = [1, 2, 3].map(() => target.open(lease.fields));
      await clients[0]!.unsafe(`set role ${target.parent}`);
      expect(await clients[0]!`select current_user`).toMatchObject([{ current_user: target.parent }]);
      // This transaction holds a lock on the role.
      await clients[1]!.unsafe(`begin; alter role ${lease.name} password 'changed'`);
      await clients[2]!.unsafe("begin; create table pending (id int); lock table shop in access share mode");
      expect(await sessions(lease.name)).toBe(3);
      await plugin.revoke(lease);
      expect([await exists(lease.name), await sessions(lease.name)]).toEqual([false, 0]);
      for (const client of clients) {
        expect(await messageOf(client`select 1`)).not.toBe("no error");
        await client.end();
      }
    });

    test("prepared transactions do not prevent a revocation", async () => {
      const lease = await issue();
      const [{ name }] = await second<[{ name: string }]>`select current_database() as name`;
      const inFirst = target.open(lease.fields);
      const inSecond = target.open({ ...lease.fields, database: encodeURIComponent(name) });
      const gids = [1, 2].map((n) => `it's ${n} of ${lease.name}`);
      for (const [client, work, gid] of [
        [inFirst, `alter role ${lease.name} password 'changed'`, gids[0]!],
        [inSecond, "create table prepared (id int)", gids[1]!],
      ] as const) {
        await client.unsafe(`begin; ${work}`);
        await client.unsafe(`prepare transaction '${gid.replace("'", "''")}'`);
        await client.end();
      }
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      expect(await target.sql`select from pg_prepared_xacts where gid in ${target.sql(gids)}`).toHaveLength(
        0,
      );
    });

    test("a user who holds the advisory lock of the role's name does not delay its revocation", async () => {
      const lease = await issue();
      const client = target.open(lease.fields);
      await client`select pg_advisory_lock(hashtextextended(${`svc ${lease.name}`}, 0))`;
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      await client.end();
    });

    test("the role's objects in all databases go to a role without privileges; its grants are dropped", async () => {
      const lease = await issue();
      const inFirst = target.open(lease.fields);
      await inFirst.unsafe(`create table "Mine, ""all"" 'of' it" (id int);
        create function mine() returns int language sql as 'select 1';
        alter default privileges grant select on tables to public`);
      const [{ name }] = await second<[{ name: string }]>`select current_database() as name`;
      const inSecond = target.open({ ...lease.fields, database: encodeURIComponent(name) });
      await inSecond`create table there (id int)`;
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      const heir = `${target.broker}_leftovers`;
      const owners = [
        await target.sql`select tableowner from pg_tables where tablename like 'Mine%'`,
        await second`select tableowner from pg_tables where tablename = 'there'`,
      ];
      expect(owners.flat().map(({ tableowner }) => tableowner)).toEqual([heir, heir]);
      const [rights] = await target.sql`
        select rolcanlogin or rolsuper or rolcreaterole as high,
          (select count(*)::int from pg_auth_members where member = oid) as parents
        from pg_roles where rolname = ${heir}`;
      expect(rights).toEqual({ high: false, parents: 0 });
      for (const client of [inFirst, inSecond]) await client.end();
      await target.sql.unsafe(`drop table "Mine, ""all"" 'of' it"`);
      await second`drop table there`;
    });

    test("a grant that only a superuser can revoke keeps the role without LOGIN, with a command in the error", async () => {
      const lease = await issue();
      await second.unsafe(`create table theirs (id int); grant select on theirs to ${lease.name}`);
      const [{ name }] = await second<[{ name: string }]>`select current_database() as name`;
      const command = `revoke all on table public.theirs from "${lease.name}";`;
      expect(await messageOf(plugin.revoke(lease))).toBe(
        `${lease.name} can no longer log in, but remains because of its privileges on table public.theirs in ${name}: the broker cannot revoke them. As a superuser, run: ${command}`,
      );
      expect(await messageOf(target.open(lease.fields)`select 1`)).toContain("not permitted to log in");
      await second.unsafe(`${command} drop table theirs`);
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
    });

    test("the error names a database for a grant on a database, and the command for objects that cannot be reassigned", async () => {
      const { sql, parent, broker } = target;
      const { database } = target.settings;
      const lease = await issue();
      /** Runs the command in the error of a revocation. */
      const follow = async (problem: string) => {
        const [message, command] = (await messageOf(plugin.revoke(lease))).split(" As a superuser, run: ");
        expect(message).toEndWith(`remains because of ${problem}.`);
        await sql.unsafe(command!.replace(/ \(.*/, ""));
      };
      await sql.unsafe(`grant create on database "${database}" to ${lease.name}`);
      await follow(`its privileges on database ${database} in ${database}: the broker cannot revoke them`);
      await sql.unsafe(
        `alter role ${lease.name} login; grant ${parent} to ${lease.name}; grant create on database "${database}" to ${parent}`,
      );
      const client = target.open(lease.fields);
      await client.unsafe("create schema mine; create table mine.shop (id int)");
      await client.end();
      await sql.unsafe(`revoke create on database "${database}" from ${parent}`);
      await follow(`schema mine in ${database}: table mine.shop depends on schema mine`);
      await plugin.revoke(lease);
      expect(await sql`select tableowner from pg_tables where schemaname = 'mine'`).toMatchObject([
        { tableowner: `${broker}_leftovers` },
      ]);
      await sql.unsafe(`drop schema mine cascade`);
    });

    test("concurrent revocations share the heir, and a role of its name that svc did not create is refused", async () => {
      const leases = await Promise.all([issue(), issue()]);
      for (const [at, lease] of leases.entries()) {
        const client = target.open(lease.fields);
        await client.unsafe(`create table both_${at} (id int)`);
        await client.end();
      }
      const heir = `${target.broker}_leftovers`;
      const owned = await target.sql`select 1 from pg_roles where rolname = ${heir}`;
      if (owned.length > 0) await target.sql.unsafe(`drop owned by ${heir}; drop role ${heir}`);
      await target.sql.unsafe(`create role ${heir}`);
      expect(await messageOf(plugin.revoke(leases[0]!))).toContain(`a role ${heir} that svc did not create`);
      expect(await exists(leases[0]!.name)).toBe(true);
      await target.sql.unsafe(`drop role ${heir}`);
      // Any user can hold the advisory lock of its name, which must not delay a revocation.
      await target.sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended(${`svc ${heir}`}, 0))`;
        await Promise.all(leases.map((lease) => plugin.revoke(lease)));
      });
      for (const lease of leases) expect(await exists(lease.name)).toBe(false);
      await target.sql.unsafe("drop table both_0; drop table both_1");
    });

    test("functions, views and rules that a lease leaves behind run without privileges", async () => {
      const lease = await issue();
      const client = target.open(lease.fields);
      await client.unsafe(`create function whoami() returns text security definer language sql as 'select current_user::text';
        create view "every shop" as select * from shop; grant select on "every shop" to public;
        create table bait (id int); create table loot (n bigint); grant insert on bait to public;
        create rule steal as on insert to bait do also insert into loot select count(*) from shop`);
      await plugin.revoke(lease);
      await client.end();
      const stranger = `stranger_${lease.name}`;
      await target.sql.begin(async (tx) => {
        await tx.unsafe(
          `create role ${stranger}; grant usage on schema public to ${stranger}; set local role ${stranger}`,
        );
        const calls = await messageOf(tx.savepoint((inner) => inner`select whoami()`));
        expect(calls).toContain("function whoami() does not exist");
        const inserts = await messageOf(tx.savepoint((inner) => inner`insert into bait values (1)`));
        expect(inserts).toContain("permission denied for table shop");
        const reads = await messageOf(tx.savepoint((inner) => inner`select * from "every shop"`));
        expect(reads).toContain("permission denied for table shop");
      });
      await target.sql.unsafe(
        `drop owned by ${stranger}; drop role ${stranger}; drop view "every shop"; drop table bait; drop table loot`,
      );
    });

    test("objects whose new owner would need privileges on the schema do not prevent a revocation", async () => {
      const lease = await issue();
      const client = target.open(lease.fields);
      await client.unsafe(`create table kept (a int, b int); create statistics st on a, b from kept;
        create collation "my ""coll" from "C"; create text search configuration words (copy = simple);
        create text search dictionary dict (template = simple);
        create function eq(kept, kept) returns bool language sql as 'select true';
        create operator === (leftarg = kept, rightarg = kept, function = eq);
        create aggregate agg(int) (sfunc = int4pl, stype = int);
        create procedure proc() language sql as 'select 1';
        create conversion conv for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8`);
      await client.end();
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
      await target.sql.unsafe("drop table kept");
    });

    test("the broker does not run functions that a user put into the search path", async () => {
      const { sql, parent } = target;
      await sql.unsafe(`create table trapped (who text); grant insert on trapped to public;
        create function public.hashtextextended(text, int) returns bigint language sql
          as 'insert into public.trapped values (current_user) returning 1::bigint';
        grant execute on function public.hashtextextended(text, int) to ${parent}`);
      await plugin.revoke(await issue());
      expect(await sql`select who from trapped`).toEqual([] as never);
      await sql.unsafe("drop function public.hashtextextended(text, int); drop table trapped");
    });

    test("a role of this name that svc did not create is neither used, dropped nor taken for revoked", async () => {
      const lease = factsFor(target);
      await target.sql.unsafe(`create role ${lease.name}`);
      expect(await messageOf(plugin.issue(lease))).toContain("already has a role of this name");
      expect(await messageOf(plugin.revoke(lease))).toBe(
        `svc does not recognise the role ${lease.name}: drop it, or run at the target: comment on role "${lease.name}" is 'svc ${installation}: lease ${lease.leaseId}';`,
      );
      expect(await exists(lease.name)).toBe(true);
      await target.sql.unsafe(`drop role ${lease.name}`);
    });

    test("a role of another installation is neither listed, renewed nor dropped", async () => {
      const theirs = await issue();
      const role = { ...theirs.role, installation: "0dd0dd0dd0dd" };
      expect(await plugin.list!({ ...theirs, role })).toEqual([]);
      for (const method of [plugin.revoke, plugin.renew!])
        expect(await messageOf(method({ ...theirs, role }))).toContain(
          "belongs to another installation of svc",
        );
      expect(await exists(theirs.name)).toBe(true);
      await plugin.revoke(theirs);
    });

    test("a revocation waits for a role that is still being created", async () => {
      const lease = factsFor(target);
      const [holding, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      // The uncommitted transaction of an issue.
      const creating = target.sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended(${`svc ${lease.name}`}, 0))`;
        await tx.unsafe(
          `create role ${lease.name}; comment on role ${lease.name} is 'svc ${installation}: lease 1'`,
        );
        await tx.unsafe(`grant ${lease.name} to ${target.broker} with admin option`);
        holding.resolve();
        await release.promise;
      });
      await holding.promise;
      const revoking = plugin.revoke(lease);
      await until("the revocation to wait", async () => {
        const rows = await target.sql`select 1 from pg_locks where locktype = 'advisory' and not granted`;
        return rows.length > 0;
      });
      release.resolve();
      await Promise.all([creating, revoking]);
      expect(await exists(lease.name)).toBe(false);
    });

    test("an aborted issue creates nothing", async () => {
      const lease = factsFor(target);
      const controller = new AbortController();
      const stopped = target.sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended(${`svc ${lease.name}`}, 0))`;
        const issuing = messageOf(plugin.issue({ ...lease, signal: controller.signal }));
        await until("the issue to wait", async () => {
          const rows = await tx`select 1 from pg_locks where locktype = 'advisory' and not granted`;
          return rows.length > 0;
        });
        controller.abort();
        expect(await within("the issue to end", issuing)).not.toBe("no error");
      });
      await stopped;
      await plugin.revoke(lease);
      expect(await exists(lease.name)).toBe(false);
    });

    test("the error says that a target is read-only, out of connections or lacks a parent", async () => {
      const { sql, broker } = target;
      const failing = async (settings: object = {}) => await messageOf(issue(settings));
      await sql.unsafe(`alter role ${broker} set default_transaction_read_only = on`);
      expect(await failing()).toEndWith("is read-only");
      expect((await plugin.check(factsFor(target)))[0]?.problem).toContain("read-only");
      await sql.unsafe(
        `alter role ${broker} reset default_transaction_read_only; alter role ${broker} connection limit 0`,
      );
      expect(await failing()).toEndWith("has no free connections for the broker");
      await sql.unsafe(`alter role ${broker} connection limit -1`);
      expect(await failing({ parents: "nobody's; drop role x" })).toEndWith(
        "lacks a parent role: run svc access check",
      );
      expect(await failing({ password: "wrong" })).toEndWith("rejected the broker's password");
      expect(await failing({ database: 'no "such"' })).toEndWith("has no such database");
    });
  });

test("a revocation fails while a session's process hangs, and succeeds once it continues", async () => {
  await using target = await startAccessTarget();
  const lease = factsFor(target);
  const { fields } = await plugin.issue(lease);
  const client = target.open(fields);
  const [{ pid }] = await client<[{ pid: number }]>`select pg_backend_pid() as pid`;
  process.kill(pid, "SIGSTOP");
  try {
    expect(await messageOf(plugin.revoke(lease))).toBe(
      `Sessions of ${lease.name} that do not end at the target: 1`,
    );
    expect(await messageOf(target.open(fields)`select 1`)).toContain("not permitted to log in");
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await plugin.revoke(lease);
  expect(await plugin.list!(lease)).toEqual([]);
  await client.end();
});

test.each(["+10m", "-10m"])(
  "a lease has its full duration at a target whose clock is off by %s",
  async (wrongBy) => {
    const debian = await startDebianPostgres(wrongBy);
    {
      await using target = await startAccessTarget(debian.url);
      const [clock] = await target.sql<[{ ahead: number }]>`
      select extract(epoch from now() - ${new Date()}::timestamptz)::int as ahead`;
      expect(Math.abs(clock.ahead)).toBeWithin(590, 610);
      const lease = factsFor(target);
      const { fields } = await plugin.issue(lease);
      const left = async () => {
        const [row] = await target.sql<[{ left: number }]>`
        select extract(epoch from rolvaliduntil - now())::int as left from pg_roles where rolname = ${lease.name}`;
        return row.left;
      };
      expect(await left()).toBeWithin(3590, 3601);
      const client = target.open(fields);
      expect(await client`select count(*)::int as n from shop`).toMatchObject([{ n: 2 }]);
      await plugin.renew!({ ...lease, seconds: 7200 });
      expect(await left()).toBeWithin(7190, 7201);
      await plugin.revoke(lease);
      expect(await plugin.list!(lease)).toEqual([]);
      await client.end();
    }
    await debian.stop();
  },
);

test("a lease of another cluster is not taken for revoked before it expires", async () => {
  const debian = await startDebianPostgres();
  const [first, second] = [await startAccessTarget(), await startAccessTarget(debian.url)];
  const lease = factsFor(first);
  const { handle } = (await plugin.issue(lease)) as { handle: string };
  const elsewhere = { ...lease, handle, role: factsFor(second).role };
  expect(await messageOf(plugin.revoke(elsewhere))).toContain("was created at another PostgreSQL than");
  await plugin.revoke({ ...elsewhere, expiresAt: new Date().toISOString() });
  expect(await plugin.list!(lease)).toEqual([lease.name]);
  await plugin.revoke({ ...lease, handle });
  expect(await plugin.list!(lease)).toEqual([]);
  await plugin.revoke({ ...lease, handle });
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await debian.stop();
});

test("a lease is not taken for revoked by a replica that has not replayed its role", async () => {
  await using replicas = await startReplicas();
  const { primary, standby } = replicas;
  const target = await startAccessTarget(primary.url);
  const replica = openSql(standby.url, { max: 1 });
  const broker = () => replica`select from pg_roles where rolname = ${target.broker}`;
  await until("the replica to have the broker", async () => (await broker()).length > 0);
  await replica`select pg_wal_replay_pause()`;
  const lease = factsFor(target);
  const { handle } = (await plugin.issue(lease)) as { handle: string };
  const settings = { ...lease.role.settings, port: standby.port };
  const there = { ...lease, handle, role: { ...lease.role, settings } };
  expect(await messageOf(plugin.revoke(there))).toEndWith(": set host to its primary");
  // A lease that was never issued must not wait for anything.
  await plugin.revoke({ ...there, handle: undefined });
  await plugin.revoke({ ...lease, handle });
  expect(await plugin.list!(lease)).toEqual([]);
  await replica.end();
  await target[Symbol.asyncDispose]();
});

test("the error says that a target refuses connections", async () => {
  const closed = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = closed;
  closed.stop(true);
  const target = { settings: { ...unreachable, port } } as never as AccessTarget;
  expect(await messageOf(plugin.revoke(factsFor(target)))).toBe(
    `PostgreSQL at 127.0.0.1:${port}/shop refused the connection`,
  );
});

test("the error says that a target has no TLS", async () => {
  // Like PostgreSQL, it refuses TLS, and ends the connection of a client that begins with it nevertheless.
  const answer: Bun.SocketHandler["data"] = (socket, sent) => {
    if (sent.length === 8) socket.write("N");
    else socket.terminate();
  };
  const plain = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: answer } });
  const settings = { ...unreachable, port: plain.port, sslMode: "verify-full" };
  expect(await messageOf(plugin.revoke(factsFor({ settings } as never as AccessTarget)))).toEndWith(
    "/shop closed the connection; unless sslMode is disable, it must accept TLS",
  );
  plain.stop(true);
});

test("a target that cuts the connection in the middle of an answer is reported at once", async () => {
  await using target = await startAccessTarget();
  const { hostname, port } = new URL(target.url);
  let left = 0;
  const proxy = createServer((near) => {
    const far = connect(Number(port), hostname);
    let most = left;
    near.on("data", (sent) => far.write(sent));
    far.on("data", (received: Buffer) => {
      near.write(received.subarray(0, most));
      most -= received.length;
      if (most < 0) near.destroy();
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on("error", () => {}).on("close", () => other.destroy());
  });
  const faults: unknown[] = [];
  const hear = (fault: unknown) => void faults.push(fault);
  process.on("uncaughtException", hear);
  try {
    const facts = factsFor(target, { port: await listen(proxy) });
    for (left of [0, 60, 200, 320, 430, 520, 600]) {
      const attempt = messageOf(plugin.issue(facts));
      expect(await within("the attempt to fail", attempt, 5)).toContain("closed the connection");
      expect(await messageOf(plugin.revoke(facts))).not.toBe("no error");
    }
  } finally {
    process.off("uncaughtException", hear);
    proxy.close();
  }
  expect(faults).toEqual([]);
});

test("an IPv6 address is not read as a host name", async () => {
  // Link-local and without a zone, so that no machine can connect to it.
  const target = { settings: { ...unreachable, host: "fe80::1", port: 5432 } } as never as AccessTarget;
  const message = await messageOf(plugin.revoke(factsFor(target)));
  expect(message).toStartWith("PostgreSQL at fe80::1:5432/shop ");
  expect(message).not.toContain("unknown host name");
});

test("revoking fails if the target accepts connections but never answers", async () => {
  const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const target = { settings: { ...unreachable, port: silent.port } } as never as AccessTarget;
  const attempt = messageOf(plugin.revoke(factsFor(target)));
  expect(await within("the attempt to fail", attempt)).toEndWith("did not answer");
  silent.stop(true);
});

const unreachable = {
  host: "127.0.0.1",
  database: "shop",
  user: "broker",
  password: "secret",
  sslMode: "disable",
  parents: "reader",
  connectionLimit: 5,
};

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
