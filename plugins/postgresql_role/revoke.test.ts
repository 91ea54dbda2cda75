import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { LeaseFacts, RoleFacts } from "../../core/plugin.ts";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { startEmbeddedPostgres } from "../../drizzle/embedded.ts";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";
import { startDebianPostgres } from "../../tests/support/database/debian_postgres.ts";
import { type AccessTarget, messageOf, startAccessTarget } from "../../tests/support/domain/access_target.ts";
import { until } from "../../tests/support/process/until.ts";
import postgresqlRole from "./postgresql_role.ts";
import { connected, targetOf } from "./target.ts";

// The end of a lease ends everything that it has, and nothing else.

const plugin = await postgresqlRole.create({}, {} as never);
const installation = "0e0d0e0d0e0d";
let made = 0;

for (const [version, start] of [
  ["15 of Debian", startDebianPostgres],
  ["18", async () => undefined],
] as const)
  describe(`PostgreSQL ${version}`, () => {
    let debian: Awaited<ReturnType<typeof startDebianPostgres>> | undefined;
    let target: AccessTarget;
    let sql: Sql;
    let heir: string;
    beforeAll(async () => {
      debian = await start();
      target = await startAccessTarget(debian?.url);
      sql = target.sql;
      heir = `${target.broker}_leftovers`;
    });
    afterAll(async () => {
      await target[Symbol.asyncDispose]();
      await debian?.stop();
    });

    const issue = async (settings: object = {}) => {
      const leaseId = ++made;
      const role: RoleFacts = {
        slug: "shop",
        installation,
        settings: { ...target.settings, ...settings },
      };
      const facts: LeaseFacts = { leaseId, name: `svc_bob_${process.pid}_${leaseId}`, role };
      const end = { seconds: 3600, expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
      const call = { ...facts, ...end, key: facts.name, signal: new AbortController().signal };
      const { fields, handle } = await plugin.issue({ ...call, user: "bob@example.com" });
      return { ...call, fields, handle };
    };
    /** Runs statements as the user of a lease. */
    const as = async ({ fields }: { fields: Record<string, string> }, statements: string) => {
      const client = target.open(fields);
      await client.unsafe(statements);
      await client.end();
    };
    /** Runs statements as a superuser on a new connection. */
    const alone = async (statements: string, database?: string) => {
      const url = new URL(target.url);
      if (database !== undefined) url.pathname = `/${database}`;
      const client = openSql(url.href, { max: 1 });
      await client.unsafe(statements);
      await client.end();
    };
    const stateOf = async (name: string) => {
      const [role] = await sql<[{ login: boolean; memberships: number; sessions: number }]>`
        select rolcanlogin as login, (select count(*)::int from pg_auth_members where member = r.oid) as memberships,
          (select count(*)::int from pg_stat_activity where usesysid = r.oid) as sessions
        from pg_roles r where rolname = ${name}`;
      return role;
    };
    const over = { login: false, memberships: 0, sessions: 0 };
    /** Everything in the database that people would miss, without its owner. */
    const catalog = async () => {
      const rows = await sql<{ what: string }[]>`
        with own as (select oid from pg_namespace where nspname !~ '^pg_|^information_schema$')
        select format('column %s %s %s', attrelid::regclass, attname, atttypid::regtype) as what from pg_attribute
          join pg_class c on c.oid = attrelid where relnamespace in (table own) and not attisdropped and attnum > 0
        union all select format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint
          where connamespace in (table own)
        union all select indexdef from pg_indexes where schemaname not in ('pg_catalog', 'information_schema')
        union all select format('view %s %s', viewname, definition) from pg_views
          where schemaname not in ('pg_catalog', 'information_schema')
        union all select format('policy %s', pg_policies) from pg_policies
        union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
        union all select pg_get_ruledef(oid) from pg_rewrite where rulename <> '_RETURN'
        union all select format('event trigger %s', evtname) from pg_event_trigger
        union all select format('cast %s %s', castsource::regtype, casttarget::regtype) from pg_cast where oid > 16384
        union all select format('default %s %s', adrelid::regclass, pg_get_expr(adbin, adrelid)) from pg_attrdef
        union all select format('routine %s', oid::regprocedure) from pg_proc where pronamespace in (table own)
        union all select format('inherits %s %s', inhrelid::regclass, inhparent::regclass) from pg_inherits
        union all select format('acl %s %s', relname, relacl) from pg_class where relnamespace in (table own)
          and pg_get_userbyid(relowner) not like 'svc_bob%' and relowner::regrole::text not like '%leftovers'
        union all select format('publication %s', pubname) from pg_publication
        order by 1`;
      return rows.map(({ what }) => what);
    };
    const owner = async (kind: string, name: string) => {
      const [row] = await sql.unsafe<[{ owner: string }]>(
        `select (aclexplode(acldefault('r', owner))).grantor::regrole::text as owner from (select ${
          kind === "proc"
            ? "proowner as owner from pg_proc where proname"
            : "relowner as owner from pg_class where relname"
        } = '${name}') o limit 1`,
      );
      return row?.owner;
    };

    test("objects that others built on those of a lease stay, and the error says what decides", async () => {
      const lease = await issue();
      await as(
        lease,
        `create collation by_name from "C";
         create function doubled(int) returns int immutable language sql as 'select 2 * $1';
         create function unused() returns int language sql as 'select 1';
         create table sorted (name text collate by_name); insert into sorted values ('kept')`,
      );
      await sql.unsafe(`
        create table app (id int primary key, twice int generated always as (doubled(id)) stored,
          other int default doubled(2), check (doubled(id) > 0));
        create unique index app_twice on app (doubled(id)); insert into app values (1), (2);
        create view report as select doubled(id) from app`);
      const before = await catalog();
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toStartWith(
        `${lease.name} can no longer log in, but remains because of routine public.doubled(integer) in ${target.settings.database}: `,
      );
      expect(message).toContain(`alter routine public.doubled(integer) owner to "${heir}"; (1 more`);
      expect(await stateOf(lease.name)).toEqual(over);
      expect(await catalog()).toEqual(before.filter((what) => what !== "routine unused()"));
      expect(await sql`select twice, other from app order by id`).toMatchObject([
        { twice: 2, other: 4 },
        { twice: 4, other: 4 },
      ]);
      // The table was handed over nevertheless.
      expect(await owner("class", "sorted")).toBe(heir);
      for (let last = ""; ;) {
        const next = await messageOf(plugin.revoke(lease));
        if (next === "no error") break;
        expect(next).not.toBe(last);
        await sql.unsafe(next.split("run: ")[1]!.replace(/ \(.*more:.*/, ""));
        last = next;
      }
      expect(await stateOf(lease.name)).toBeUndefined();
      expect(await catalog()).toEqual(before.filter((what) => what !== "routine unused()"));
      await sql.unsafe(
        "drop table app cascade; drop table sorted; drop collation by_name; drop routine doubled",
      );
    });

    /** As `[what the lease does, what others do with it, what blocks, what removes all of it]`. */
    const blocking: [string, string, string, string][] = [
      [
        "create function f() returns trigger language plpgsql as 'begin return new; end'",
        "create table app (id int); create trigger on_app before insert on app execute function f()",
        "routine public.f()",
        "drop table app; drop function f()",
      ],
      [
        "create function f() returns event_trigger language plpgsql as 'begin end'",
        "create event trigger on_ddl on sql_drop execute function f()",
        "routine public.f()",
        "drop event trigger on_ddl; drop function f()",
      ],
      [
        "create function f(text) returns bool language sql as 'select true'",
        "create table app (name text); create policy mine on app using (f(name))",
        "routine public.f(pg_catalog.text)",
        "drop table app; drop function f",
      ],
      [
        "create function f(text) returns bool language sql immutable as 'select true'",
        "create domain short as text check (f(value)); create table app (name short)",
        "routine public.f(pg_catalog.text)",
        "drop table app; drop domain short; drop function f",
      ],
      [
        "create function f(point) returns int language sql immutable as 'select 1'",
        "create cast (point as int) with function f(point)",
        "routine public.f(pg_catalog.point)",
        "drop cast (point as int); drop function f",
      ],
      [
        "create function f(int, int) returns int language sql immutable as 'select 1'",
        `create operator public.<<>> (leftarg = int, rightarg = int, function = f);
         create aggregate agg(int) (sfunc = f, stype = int, initcond = 0)`,
        "routine public.f(integer,integer)",
        "drop operator public.<<>>(int, int); drop aggregate agg(int); drop function f",
      ],
      [
        `create collation "My ""coll" from "C"`,
        `create table app (name text collate "My ""coll")`,
        `collation public."My ""coll"`,
        `drop table app; drop collation "My ""coll"`,
      ],
      [
        "create text search dictionary dict (template = simple)",
        `create text search configuration words (copy = simple);
         alter text search configuration words alter mapping for word with dict`,
        "text search dictionary public.dict",
        "drop text search configuration words; drop text search dictionary dict",
      ],
      [
        "create view seen as select * from shop; create function f() returns int language sql as 'select 1'",
        "create rule on_seen as on insert to seen do instead select f()",
        "routine public.f()",
        "drop view seen; drop function f",
      ],
      [
        "select 1",
        "create table app (id int); alter table app enable row level security; create policy lone on app to LEASE",
        "policy lone on public.app",
        "drop table app",
      ],
    ];
    test.each(blocking)(
      "a lease stays for what others use: %s / %s",
      async (mine, theirs, blocker, remove) => {
        const lease = await issue();
        await as(lease, mine);
        await sql.unsafe(theirs.replace("LEASE", lease.name));
        const before = await catalog();
        const message = await messageOf(plugin.revoke(lease));
        expect(message).toContain(`remains because of ${blocker} in `);
        expect(await stateOf(lease.name)).toEqual(over);
        expect(await catalog()).toEqual(before);
        // The command in the message decides.
        await sql.unsafe(message.split("run: ")[1]!);
        await plugin.revoke(lease);
        expect(await stateOf(lease.name)).toBeUndefined();
        await sql.unsafe(`${remove.replace("drop table app", "drop table if exists app")}`);
      },
    );

    test("privileges that a lease granted further stay until a person decides", async () => {
      const lease = await issue();
      const reader = `reader_${lease.name}`;
      await sql.unsafe(`create role ${reader}; create table app (id int);
        grant select on app to ${lease.name} with grant option`);
      await as(lease, `grant select on app to ${reader}`);
      const before = await catalog();
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain("remains because of its privileges on table public.app in ");
      expect(await catalog()).toEqual(before);
      await sql.unsafe(message.split("run: ")[1]!);
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe(`drop table app; drop role ${reader}`);
    });

    /** As `[on what, what happens before, what the lease has then, what blocks]`. */
    const granted: [string, string, string, string][] = [
      [
        "a column",
        "create table app (id int, name text)",
        "grant select (name) on app to LEASE with grant option; set role LEASE; grant select (name) on app to OTHER",
        "table public.app",
      ],
      [
        "a server",
        "create extension postgres_fdw; create server far foreign data wrapper postgres_fdw",
        "grant usage on foreign server far to LEASE with grant option; set role LEASE; grant usage on foreign server far to OTHER",
        "server far",
      ],
      [
        "a table of which another role granted them",
        "create table app (id int); grant select on app to OTHER with grant option",
        "set role OTHER; grant select on app to LEASE",
        "table public.app",
      ],
    ];
    test.each(granted)("the command for the privileges on %s decides", async (_, setup, grant, blocker) => {
      const lease = await issue();
      const other = `other_${lease.name}`;
      const named = (text: string) => text.replaceAll("OTHER", other).replaceAll("LEASE", lease.name);
      await alone(`create role ${other}; ${named(setup)}`);
      await alone(named(grant));
      const before = await catalog();
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain(`remains because of its privileges on ${blocker} in `);
      expect(await catalog()).toEqual(before);
      await alone(message.split("run: ")[1]!);
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await alone(
        `drop table if exists app; drop extension if exists postgres_fdw cascade; drop role ${other}`,
      );
    });

    test("a partition of a table of others goes to the heir", async () => {
      await sql.unsafe(`create table parts (id int) partition by list (id);
        alter table parts owner to ${target.parent}`);
      const lease = await issue();
      await as(lease, "create table part partition of parts for values in (1); insert into part values (1)");
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      expect(await owner("class", "part")).toBe(heir);
      expect(await sql`select id from parts`).toHaveLength(1);
      await sql.unsafe("drop table parts");
    });

    test("a policy of others stays, however many default privileges a lease has", async () => {
      const { database } = target.settings;
      await sql.unsafe(`grant create on database "${database}" to ${target.parent};
        create table app (id int); alter table app enable row level security`);
      const lease = await issue();
      await as(
        lease,
        `do $$ declare one text; begin for n in 1..60 loop
           execute format('create schema own_%s', n);
           foreach one in array array['select on tables', 'usage on sequences', 'execute on functions', 'usage on types'] loop
             execute format('alter default privileges in schema own_%s grant %s to public', n, one);
           end loop;
         end loop; end $$`,
      );
      await sql.unsafe(`create policy lone on app to ${lease.name}`);
      const before = await catalog();
      expect(await messageOf(plugin.revoke(lease))).toContain("because of policy lone on public.app in ");
      expect(await catalog()).toEqual(before);
      await sql.unsafe("drop policy lone on app");
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe(`do $$ begin for n in 1..60 loop execute format('drop schema own_%s', n); end loop; end $$;
        drop table app; revoke create on database "${database}" from ${target.parent}`);
    });

    // PostgreSQL checks a foreign key as the owner of the table.
    test.each([
      ["to", "create table app.mine (id int references app.orders)", "select 1", "delete from app.orders"],
      [
        "from",
        "create table app.mine (id int primary key); insert into app.mine values (1)",
        "grant references on app.mine to OWNER; alter table app.orders add kind int references app.mine",
        "update app.orders set kind = 1",
      ],
    ])(
      "a table with a foreign key %s one of others stays while the heir may not use its schema",
      async (_, mine, theirs, statement) => {
        const lease = await issue();
        const application = `app_${lease.name}`;
        await alone(`create role ${application}; create schema app;
          grant usage, create on schema app to ${target.parent}; grant usage on schema app to ${application};
          create table app.orders (id int primary key); insert into app.orders values (1);
          alter table app.orders owner to ${application}; grant references on app.orders to ${target.parent}`);
        await as(lease, mine);
        await alone(theirs.replace("OWNER", application));
        const message = await messageOf(plugin.revoke(lease));
        expect(message).toContain("remains because of table app.mine in ");
        expect(await stateOf(lease.name)).toEqual(over);
        await alone(message.split("run: ")[1]!);
        await plugin.revoke(lease);
        expect(await stateOf(lease.name)).toBeUndefined();
        await alone(`set role ${application}; ${statement}`);
        await alone(`drop schema app cascade; drop role ${application}`);
      },
    );

    test("a database that accepts no connections is named, with the command", async () => {
      const name = `closed_${target.parent}`;
      await sql.unsafe(`create database ${name}`);
      const lease = await issue();
      await alone(`create table theirs (id int); alter table theirs owner to ${lease.name}`, name);
      await sql.unsafe(`alter database ${name} allow_connections false`);
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain(`remains because of what it has in the database ${name}: `);
      await sql.unsafe(message.split("run: ")[1]!);
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe(`drop database ${name}`);
    });

    test("a membership that a lease granted stays until a person decides", async () => {
      const lease = await issue();
      const [team, member] = [`team_${lease.name}`, `member_${lease.name}`];
      await sql.unsafe(
        `create role ${team}; create role ${member}; grant ${team} to ${lease.name} with admin option`,
      );
      await as(lease, `grant ${team} to ${member}`);
      const message = await messageOf(plugin.revoke(lease));
      const isMember = async () => {
        const [row] = await sql<[{ is: boolean }]>`select pg_has_role(${member}, ${team}, 'member') as is`;
        return row.is;
      };
      expect(await isMember()).toBe(true);
      if (message !== "no error") {
        expect(message).toContain(`remains because of the membership of role ${member} in role ${team}`);
        expect((await stateOf(lease.name))?.login).toBe(false);
        await sql.unsafe(message.split("run: ")[1]!);
        await plugin.revoke(lease);
      }
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe(`drop role ${member}; drop role ${team}`);
    });

    test("data goes to the heir, whatever others have built on it", async () => {
      const { database } = target.settings;
      await sql.unsafe(`grant create on database "${database}" to ${target.parent};
        create table parts (id int) partition by list (id); alter table parts owner to ${target.parent};
        create table parent_table (id int); alter table parent_table owner to ${target.parent}`);
      const lease = await issue();
      await as(
        lease,
        `create table "My ""table" (id serial primary key, n int generated always as identity);
         insert into "My ""table" default values;
         create type pair as (a int, b int); create domain whole as int check (value > 0); create type mood as enum ('ok');
         create sequence counter; select lo_create(4711);
         create materialized view summed as select count(*) from shop; create view seen as select * from shop;
         create table part partition of parts for values in (1); create table child () inherits (parent_table);
         create schema own; create table own.inner_table (id int); create function own.f() returns int language sql as 'select 1';
         create extension hstore; create publication news for table "My ""table";
         alter default privileges grant select on tables to public;
         alter default privileges in schema own grant select on tables to public;
         alter default privileges for role ${target.parent} grant select on tables to ${lease.name};
         comment on table "My ""table" is 'ours'; create temp table mine (id int)`,
      );
      await sql.unsafe(`
        create table app (id int references "My ""table", p pair, w whole, m mood, c int default nextval('counter'), h hstore);
        insert into app values (1, row(1, 2), 3, 'ok'); insert into parts values (1); insert into child values (7);
        create view on_view as select * from seen; create view on_summed as select * from summed;
        create table own.of_app (id int); grant select on "My ""table" to ${target.broker};
        create rule on_seen as on insert to seen do instead nothing`);
      const before = await catalog();
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      const after = await catalog();
      // The function is in a schema of the heir. The owner of a publication needs CREATE on the database.
      expect(before.filter((what) => !after.includes(what))).toEqual(["publication news"]);
      const [rows] = await sql`select (select count(*)::int from app) + (select count(*)::int from parts)
        + (select count(*)::int from child) + (select count(*)::int from "My ""table") as n`;
      expect(rows).toEqual({ n: 4 });
      const [large] =
        await sql`select lomowner::regrole::text as owner from pg_largeobject_metadata where oid = 4711`;
      expect(large).toEqual({ owner: heir });
      const [extension] =
        await sql`select extowner::regrole::text as owner from pg_extension where extname = 'hstore'`;
      expect(extension).toEqual({ owner: heir });
      const [schema] =
        await sql`select nspowner::regrole::text as owner from pg_namespace where nspname = 'own'`;
      expect(schema).toEqual({ owner: heir });
      await sql.unsafe(`drop table app, parts, parent_table, child, "My ""table", own.inner_table, own.of_app cascade;
        drop publication if exists news; drop schema own cascade; drop view seen cascade; drop materialized view summed cascade; drop extension hstore;
        drop type pair; drop type mood; drop domain whole; drop sequence counter; select lo_unlink(4711);
        revoke create on database "${database}" from ${target.parent}`);
    });

    test.each([
      ["its row", "alter role LEASE password 'x'; set local role PARENT"],
      [
        "its row and a table",
        "alter role LEASE password 'x'; lock table shop in access share mode; set local role PARENT",
      ],
      ["a new object of it", "create table hidden (id int); set local role PARENT"],
      ["its settings", "alter role LEASE set work_mem = '1MB'; set local role PARENT"],
    ])(
      "a prepared transaction of a parent that holds %s is rolled back, and no other one",
      async (_, work) => {
        const lease = await issue({ setRole: true });
        const { parent } = target;
        const inWork = work.replaceAll("LEASE", lease.name).replaceAll("PARENT", parent);
        await as(lease, `begin; ${inWork}; prepare transaction 'it''s "mine"'`);
        await alone(
          `begin; create table of_app (id int); set local role ${parent}; prepare transaction 'app'`,
        );
        await plugin.revoke(lease);
        expect(await stateOf(lease.name)).toBeUndefined();
        expect(await sql`select gid from pg_prepared_xacts`).toEqual([{ gid: "app" }] as never);
        await sql`rollback prepared 'app'`;
      },
    );

    test("a prepared transaction that holds a lease is rolled back, even if somebody else waits for it", async () => {
      const lease = await issue({ setRole: true });
      const { parent } = target;
      await as(
        lease,
        `begin; alter role ${lease.name} password 'x'; set local role ${parent}; prepare transaction 'x'`,
      );
      const waiting = messageOf(alone(`alter role ${lease.name} nologin`));
      await until("it to wait", async () => (await sql`select from pg_locks where not granted`).length > 0);
      await plugin.revoke(lease);
      // PostgreSQL may refuse the second of two changes of the same row.
      expect(["no error", "tuple concurrently updated"]).toContain(await waiting);
      expect(await stateOf(lease.name)).toBeUndefined();
    });

    test("a prepared transaction of a parent that locks an object of the lease is named, and stays", async () => {
      const lease = await issue({ setRole: true });
      await as(lease, "create table locked (id int); insert into locked values (1)");
      await alone(
        `begin; lock table locked in share mode; set local role ${target.parent}; prepare transaction 'of app'`,
      );
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain(
        `because of table public.locked in ${target.settings.database}: the prepared transaction 'of app' of ${target.parent} has locked it. As a superuser, run: rollback prepared 'of app';`,
      );
      expect(await stateOf(lease.name)).toEqual(over);
      await sql`rollback prepared 'of app'`;
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql`drop table locked`;
    });

    test("a prepared transaction whose owner the broker may not become is named, with the command", async () => {
      const lease = await issue();
      const dba = `dba_${lease.name}`;
      await sql.unsafe(`create role ${dba} superuser`);
      await alone(
        `begin; alter role ${lease.name} password 'x'; set local role ${dba}; prepare transaction 'dba'`,
      );
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toBe(
        `The prepared transaction 'dba' of ${dba} holds the role ${lease.name}: as a superuser, run in ${target.settings.database}: rollback prepared 'dba';`,
      );
      await sql.unsafe(message.split(`${target.settings.database}: `)[1]!);
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe(`drop role ${dba}`);
    });

    test("a session of others that holds the role is not ended, but named", async () => {
      const lease = await issue();
      const [holding, release] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
      const holder = sql.begin(async (tx) => {
        await tx.unsafe(`alter role ${lease.name} password 'x'`);
        const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
        holding.resolve(pid);
        await release.promise;
      });
      const pid = await holding.promise;
      const [{ who }] = await sql<[{ who: string }]>`select current_user as who`;
      expect(await messageOf(plugin.revoke(lease))).toBe(
        `${lease.name} is locked at the target by the session ${pid} of ${who}`,
      );
      release.resolve();
      await holder;
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
    });

    test.each([
      ["a comment", "comment on role LEASE is 'of Bob'"],
      ["no comment", "comment on role LEASE is null"],
      ["another name", `alter role LEASE rename to "Bob's "`],
      ["both", `comment on role LEASE is 'of Bob'; alter role LEASE rename to bobs`],
    ])("a role that has %s since is renewed and revoked", async (_, change) => {
      const lease = await issue();
      const [{ oid }] = await sql<
        [{ oid: string }]
      >`select oid::text from pg_roles where rolname = ${lease.name}`;
      await sql.unsafe(change.replaceAll("LEASE", lease.name));
      const exists = () => sql`select from pg_roles where oid = ${oid}::text::oid`;
      await plugin.renew!({ ...lease, seconds: 7200 });
      await plugin.revoke(lease);
      expect(await exists()).toHaveLength(0);
    });

    test("a role of the lease's name is never taken for revoked", async () => {
      const lease = await issue();
      await sql.unsafe(`drop role ${lease.name}; create role ${lease.name} login`);
      expect(await messageOf(plugin.revoke(lease))).toStartWith(
        `svc does not recognise the role ${lease.name}: `,
      );
      // Renamed, with a second role of its name.
      await sql.unsafe(`drop role ${lease.name}`);
      const other = await issue();
      await sql.unsafe(
        `alter role ${other.name} rename to ${other.name}_old; create role ${other.name} login`,
      );
      expect(await messageOf(plugin.revoke(other))).toStartWith(
        `svc does not recognise the role ${other.name}: `,
      );
      expect(await stateOf(`${other.name}_old`)).toBeUndefined();
      await sql.unsafe(`drop role ${other.name}`);
      for (const one of [lease, other]) await plugin.revoke(one);
    });

    test("a role with the lease's OID, but another name and no expiry, is not taken for it", async () => {
      const lease = await issue();
      const innocent = `app_${lease.name}`;
      await sql.unsafe(`comment on role ${lease.name} is null; alter role ${lease.name} valid until 'infinity';
        alter role ${lease.name} rename to ${innocent}`);
      for (const end of [() => plugin.revoke(lease), () => plugin.renew!({ ...lease, seconds: 7200 })])
        expect(await messageOf(end())).toStartWith(`svc does not recognise the role ${innocent}: `);
      expect(await stateOf(innocent)).toMatchObject({ login: true });
      await sql.unsafe(`drop role ${innocent}`);
      await plugin.revoke(lease);
    });

    test("a lease of an earlier release, whose handle has no OID, is revoked by its name", async () => {
      const lease = await issue();
      await plugin.revoke({ ...lease, handle: lease.handle!.split(" ")[0]! });
      expect(await stateOf(lease.name)).toBeUndefined();
    });

    test("settings of the database or the broker change neither the expiry nor who acts", async () => {
      const { database } = target.settings;
      const { broker, parent } = target;
      await sql.unsafe(`alter database "${database}" set datestyle = 'SQL, DMY';
        alter database "${database}" set timezone = 'Asia/Kolkata';
        alter role ${broker} set datestyle = 'German'; alter role ${broker} set timezone = 'America/St_Johns';
        alter role ${broker} set search_path = public; alter role ${broker} set role = ${parent};
        alter role ${broker} in database "${database}" set statement_timeout = 1;
        alter role ${broker} set standard_conforming_strings = off; alter role ${broker} set intervalstyle = 'sql_standard'`);
      const left = async ({ name }: { name: string }) => {
        const [row] = await sql<[{ left: number }]>`
          select extract(epoch from rolvaliduntil - now())::int as left from pg_roles where rolname = ${name}`;
        return row.left;
      };
      try {
        const lease = await issue();
        expect(await left(lease)).toBeWithin(3590, 3602);
        await plugin.renew!({ ...lease, seconds: 7200 });
        expect(await left(lease)).toBeWithin(7190, 7202);
        expect((await plugin.check(lease)).filter(({ warning }) => !warning)).toEqual([]);
        await plugin.revoke(lease);
        expect(await stateOf(lease.name)).toBeUndefined();
      } finally {
        await sql.unsafe(`alter database "${database}" reset all; alter role ${broker} reset all;
          alter role ${broker} in database "${database}" reset all`);
      }
    });

    test("a transaction of a worker whose host vanished does not stay open at the target", async () => {
      const { role, signal } = await issue();
      const [row] = await connected(targetOf(role), signal, (there) =>
        there.unsafe("show idle_in_transaction_session_timeout"),
      );
      expect(row?.idle_in_transaction_session_timeout).toBe("10s");
    });

    test("a database that the broker cannot connect to does not keep LOGIN, and is named", async () => {
      const name = `other_${target.parent}`;
      await sql.unsafe(`create database ${name}`);
      const lease = await issue();
      await alone(`create table theirs (id int); alter table theirs owner to ${lease.name}`, name);
      await as(lease, "create table here (id int)");
      await sql.unsafe(`revoke connect on database ${name} from public`);
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain(`remains because of what it has in the database ${name}: `);
      expect(await stateOf(lease.name)).toEqual(over);
      expect(await owner("class", "here")).toBe(heir);
      await sql.unsafe(message.split("run: ")[1]!);
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      await sql.unsafe("drop table here");
      await sql.unsafe(`drop database ${name}`);
    });

    test("users cannot become a parent on PostgreSQL 16 and newer, unless the role says so", async () => {
      const lease = await issue();
      const becomes = await messageOf(as(lease, `set role ${target.parent}`));
      if (version === "18") expect(becomes).toBe(`permission denied to set role "${target.parent}"`);
      else expect(becomes).toBe("no error");
      // Its privileges do not depend on that.
      await as(lease, "select * from shop");
      const allowed = await issue({ setRole: true });
      await as(allowed, `set role ${target.parent}`);
      for (const one of [lease, allowed]) expect(await plugin.revoke(one)).toEqual({ left: [] });
    });

    test("the end of a lease lists what was changed under its parents, and nothing older", async () => {
      const { parent } = target;
      const { database } = target.settings;
      await sql.unsafe(`create table "old" (id int); alter table "old" owner to ${parent};
        create function older() returns int language sql as 'select 1'; alter function older() owner to ${parent};
        create function replaced() returns int language sql as 'select 1'; alter function replaced() owner to ${parent};
        create table altered (id int default 1, name text); alter table altered owner to ${parent};
        create view seen as select 1 as n; alter view seen owner to ${parent};
        create table analysed (id int); alter table analysed owner to ${parent}; insert into analysed values (1);
        create function fires() returns trigger language plpgsql as 'begin return new; end'`);
      const name = `left_${parent}`;
      await sql.unsafe(`create database ${name}`);
      await alone(`grant create on schema public to ${parent}`, name);
      const lease = await issue({ setRole: true });
      await as(
        lease,
        `set role ${parent}; create function backdoor() returns int security definer language sql as 'select 1';
         create table "Hers" (id int);
         create or replace function replaced() returns int language sql as 'select 2';
         create trigger sneaky before insert on "old" execute function fires();
         create policy loose on "old" using (true);
         alter table altered alter id set default 2; create or replace view seen as select 2 as n`,
      );
      for (const statement of ["analyze analysed", "vacuum analysed", "create index on analysed (id)"])
        await sql.unsafe(statement);
      await as(
        { fields: { ...lease.fields, database: name } },
        `set role ${parent}; create function there() returns int language sql as 'select 1'`,
      );
      await alone(
        `begin; set local role ${parent}; lock table shop in access share mode; prepare transaction 'open'`,
      );
      const { left } = (await plugin.revoke(lease)) as { left: string[] };
      expect(left.sort()).toEqual(
        [
          `function public.backdoor() of ${parent} in ${database}`,
          `function public.replaced() of ${parent} in ${database}`,
          `function public.there() of ${parent} in ${name}`,
          `policy loose on table public.old of ${parent} in ${database}`,
          `prepared transaction 'open' of ${parent} in ${database}`,
          `table public."Hers" of ${parent} in ${database}`,
          `table public.altered of ${parent} in ${database}`,
          `table public.old of ${parent} in ${database}`,
          `trigger sneaky on table public.old of ${parent} in ${database}`,
          `view public.seen of ${parent} in ${database}`,
        ].sort(),
      );
      await sql`rollback prepared 'open'`;
      const next = await issue({ setRole: true });
      expect(await plugin.revoke(next)).toEqual({ left: [] });
      await sql.unsafe(
        `drop table "old", "Hers", altered, analysed; drop view seen; drop function backdoor, replaced, older, fires`,
      );
      await sql.unsafe(`drop database ${name}`);
    });

    test("10,000 large objects and 2,000 tables, functions and grants are handed over in batches", async () => {
      const lease = await issue();
      await as(lease, "select lo_create(20000 + n) from generate_series(1, 10000) n");
      await as(
        lease,
        `do $$ begin for n in 1..2000 loop
           execute format('create table many_%s (id int)', n);
           execute format('create function many_%s() returns int language sql as $f$ select 1 $f$', n);
           execute format('create table theirs_%s (id int)', n);
           if n % 100 = 0 then commit; end if;
         end loop; end $$`,
      );
      await sql.unsafe(`create view used as select many_1000()`);
      const message = await messageOf(plugin.revoke(lease));
      expect(message).toContain("because of routine public.many_1000() in ");
      await sql.unsafe("drop view used");
      await plugin.revoke(lease);
      expect(await stateOf(lease.name)).toBeUndefined();
      const [left] = await sql`select
        (select count(*)::int from pg_largeobject_metadata where lomowner = ${heir}::regrole and oid > 20000) as objects,
        (select count(*)::int from pg_class where relname like 'many%' and relowner = ${heir}::regrole) as tables,
        (select count(*)::int from pg_proc where proname like 'many%') as functions`;
      expect(left).toEqual({ objects: 10000, tables: 2000, functions: 0 });
      await sql.unsafe(`do $$ begin for n in 1..2000 loop
        execute format('drop table many_%s, theirs_%s', n, n);
        if n % 100 = 0 then commit; end if;
      end loop; end $$`);
    });
  });

// PostgreSQL records neither who created a slot nor when, so it may be somebody else's.
test("the end of a lease lists the replication slots of a server whose parent has REPLICATION, and keeps them", async () => {
  await using temporary = await temporaryDirectory();
  // The servers of other tests have no slots.
  const server = await startEmbeddedPostgres({ directory: join(temporary.path, "postgres"), durable: true });
  await using _ = { [Symbol.asyncDispose]: () => server.stop() };
  await using target = await startAccessTarget(server.url);
  const { sql, parent, settings } = target;
  await sql.unsafe(`alter role ${parent} replication`);
  const role: RoleFacts = { slug: "shop", installation, settings: { ...settings, setRole: true } };
  const facts: LeaseFacts = { leaseId: 1, name: "svc_bob_1", role };
  const end = { seconds: 3600, expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
  const call = { ...facts, ...end, key: facts.name, signal: new AbortController().signal };
  const { fields, handle } = await plugin.issue({ ...call, user: "bob@example.com" });
  const client = target.open(fields);
  await client.unsafe(`set role ${parent}; select pg_create_physical_replication_slot('hers')`);
  await client.end();
  expect(await plugin.revoke({ ...call, handle })).toEqual({ left: ["replication slot hers"] });
  expect(await sql`select slot_name from pg_replication_slots`).toHaveLength(1);
});
