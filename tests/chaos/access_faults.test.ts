import { expect, test } from "bun:test";
import { sql as drizzleSql, eq, isNull, type SQL } from "drizzle-orm";
import { Keys } from "../../core/auth/token/keys.ts";
import { readConfig } from "../../core/config.ts";
import { type Database, openDatabase, openSql, type Sql } from "../../drizzle/client.ts";
import { accessLease, incident, participant } from "../../drizzle/schema/index.ts";
import { systemClock } from "../../platform/clock.ts";
import { createLog } from "../../platform/log.ts";
import { spawnSvc } from "../support/cli/process.ts";
import { BreakablePostgres } from "../support/database/breakable_postgres.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { openSpoiltWay, type SpoiltWay } from "../support/database/spoilt_way.ts";
import { type AccessTarget, startAccessTarget } from "../support/domain/access_target.ts";
import { type IncidentIds, insertIncident } from "../support/domain/incident.ts";
import { numbers } from "../support/domain/numbers.ts";
import { createUsualRole } from "../support/domain/usual_role.ts";
import { effort } from "../support/effort.ts";
import { insertEmptyIncident, insertIndividual, letJoin } from "../support/http/participants.ts";
import { type Person, personOf } from "../support/http/people.ts";
import type { TestServer } from "../support/http/server.ts";
import { type Started, startServing } from "../support/http/serving.ts";
import { until } from "../support/process/until.ts";
import { seed } from "../support/seed.ts";

// Users get leases, use them and lose them in all ways, while everything that svc depends on fails. Afterwards, nothing of
// svc is left at the target, and no object of others has changed.

/** How long things fail: in an ordinary run until each has failed once. SVC_TEST_EFFORT=20 is ten minutes. */
const seconds = effort(30);
const isLong = seconds > 30;
const pluginTimeout = 8;
/** All kinds of faults. */
const failureCount = 14;
/** It owns the objects of others, besides the superuser. */
const application = "shop_owner";

type Below = (limit: number) => number;
const oneOf = <T>(below: Below, all: readonly T[]): T => all[below(all.length)]!;
const ignoreErrors = (work: Promise<unknown>) => work.then(() => {}).catch(() => {});
const count = (counts: Record<string, number>, name: string) => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Two servers and two workers as processes, and a target behind a proxy. */
class World {
  readonly failures: Record<string, number> = {};
  readonly servers: Started[] = [];
  readonly workers: ReturnType<typeof spawnSvc>[] = [];
  /** The output of all servers and workers. */
  readonly said: (() => string)[] = [];
  db!: Database;
  ids!: IncidentIds;
  postgres!: BreakablePostgres;
  target!: AccessTarget;
  way!: SpoiltWay;
  /** The slugs of the access roles. */
  roles: string[] = [];
  /** The objects of others: what each must still be. */
  readonly others = new Map<string, string>();
  readonly #parts = new AsyncDisposableStack();
  #environment: Record<string, string> = {};
  #server!: TestServer;

  static async start(major: number): Promise<World> {
    const world = new World();
    try {
      await world.#start(major);
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #start(major: number): Promise<void> {
    const parts = this.#parts;
    const { url } = parts.use(await createTestDatabase());
    this.#environment = {
      SVC_DATABASE_URL: url,
      SVC_KEY_SECRET: `faults-${crypto.randomUUID()}`,
      SVC_PUBLIC_URL: "http://127.0.0.1:1",
      SVC_OIDC_ISSUER: "http://127.0.0.1:1",
      SVC_PLUGIN_CREDENTIAL: "postgresql-role",
      SVC_PLUGIN_TIMEOUT: String(pluginTimeout),
    };
    const client = openDatabase(url, 8);
    parts.defer(() => client.close());
    this.db = client.db;
    this.ids = await insertIncident(this.db, new Date());
    const config = readConfig(this.#environment);
    const keys = new Keys({ db: this.db, clock: systemClock, config, log: createLog("silent") });
    // What `personOf` needs of a server in this process.
    const standIn = { db: this.db, clock: systemClock, config, keys, issuer: {}, fetch: this.#fetch };
    this.#server = standIn as unknown as TestServer;
    this.postgres = parts.use(await BreakablePostgres.start(major));
    this.target = parts.use(await startAccessTarget(this.postgres.url));
    this.way = await openSpoiltWay(this.postgres.url);
    parts.defer(() => this.way.close());
    parts.defer(async () => {
      await Promise.all(this.servers.map((one) => one.end("SIGKILL")));
      for (const { child } of this.workers) child.kill("SIGKILL");
    });
    await Promise.all([this.startServer(0), this.startServer(1), this.#makeOthers()]);
    for (const at of [0, 1]) this.startWorker(at);
    await this.#makeRoles();
  }

  readonly #fetch = (path: string, init?: RequestInit) =>
    this.servers[Math.floor(Math.random() * this.servers.length)]!.fetch(path, init);

  async startServer(at: number): Promise<void> {
    const started = await startServing("/", [], { app: "server/main:app", env: this.#environment });
    this.servers[at] = started;
    this.said.push(started.said);
  }

  startWorker(at: number): void {
    const started = spawnSvc(["scheduler", "start"], this.#environment);
    this.workers[at] = started;
    this.said.push(started.said);
  }

  signIn(name: string): Promise<Person> {
    return personOf(this.#server, `${name}@example.com`, [name === "root" ? "admin" : "oncall"]);
  }

  /** The objects of an application at the target, and a parent with more privileges than that of `AccessTarget`. */
  async #makeOthers(): Promise<void> {
    const { broker, parent } = this.target;
    await this.postgres.asking((sql) =>
      sql.unsafe(`
        create role ${application};
        create role shop_ddl nologin createdb bypassrls replication;
        grant shop_ddl to ${broker} with admin option;
        grant all on database postgres to shop_ddl;
        grant usage, create on schema public to shop_ddl;
        grant select, insert on shop to shop_ddl;
        create schema workshop;
        -- The heir may own functions here.
        grant all on schema workshop to public;
        create table workshop.busy ();
        grant all on workshop.busy to public;
        create schema app authorization ${application};
        grant usage on schema app to ${parent}, shop_ddl;
        set role ${application};
        create type app.mood as enum ('glad', 'sad');
        create table app.customer (id serial primary key, name text not null, mood app.mood default 'glad');
        insert into app.customer (name) select 'customer ' || i from generate_series(1, 500) i;
        create view app.names as select name from app.customer;
        create function app.greeting(text) returns text immutable language sql as $$ select 'Dear ' || $1 $$;
        create index on app.customer (app.greeting(name));
        alter table app.customer enable row level security;
        create policy everybody on app.customer to ${parent} using (true);
        grant select on app.customer to ${parent}, shop_ddl;
        alter default privileges in schema app grant select on tables to ${parent}`),
    );
    await this.postgres.asking((sql) => this.note(sql));
  }

  async #makeRoles(): Promise<void> {
    const admin = await this.signIn("root");
    const { settings, parent } = this.target;
    const behindProxy = { ...settings, port: Number(new URL(this.way.url).port), connectionLimit: 10 };
    // The sessions of the second survive a cut of the broker's connections.
    const direct = { ...behindProxy, clientPort: settings.port!, setRole: true, accept: "REPLICATION" };
    for (const [parents, more] of [
      [parent, behindProxy],
      ["shop_ddl", direct],
      [`shop_ddl,${parent}`, direct],
    ] as const)
      this.roles.push(
        await createUsualRole(admin, {
          plugin: "postgresql-role",
          settings: { ...more, parents },
          default_duration: 60,
          max_duration: 120,
        }),
      );
  }

  /** Remembers the objects of others that exist now. */
  async note(sql: Sql): Promise<void> {
    for (const [name, value] of await describeOthers(sql, this.target.broker))
      if (!this.others.has(name)) this.others.set(name, value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/**
 * All rows of the catalogs that describe objects of others, with owners and privileges, which is more than `pg_dump` shows;
 * and a digest of the rows of each table.
 */
async function describeOthers(sql: Sql, broker: string): Promise<Map<string, string>> {
  const heir = `${broker}_leftovers`;
  const isOurs = (name: string) => `(${name} like 'svc\\_%' or ${name} = '${heir}')`;
  const rows = await sql.unsafe<{ name: string; value: string }[]>(`
    with o as (select oid from pg_roles where rolname in (current_user, '${application}')),
      c as (select * from pg_class where relowner in (select oid from o) and oid >= 16384 and relkind <> 't')
    select 'class ' || oid::regclass as name, (to_jsonb(c) - array['relpages', 'reltuples', 'relallvisible',
      'relallfrozen', 'relfrozenxid', 'relminmxid', 'relhastriggers', 'relhasrules'])::text as value from c
    union all select format('column %s.%s', attrelid::regclass, attnum), concat_ws(' ', attname,
      format_type(atttypid, atttypmod), attnotnull, attacl, attgenerated, pg_get_expr(adbin, adrelid))
      from pg_attribute a left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where attrelid in (select oid from c) and attnum > 0
    union all select format('constraint %s.%s', conrelid::regclass, conname), pg_get_constraintdef(oid) from pg_constraint
      where conrelid in (select oid from c)
    union all select 'index ' || indexrelid::regclass, pg_get_indexdef(indexrelid) || indisvalid from pg_index
      where indrelid in (select oid from c)
    union all select 'view ' || oid::regclass, pg_get_viewdef(oid) from c where relkind in ('v', 'm')
    union all select format('policy %s.%s', polrelid::regclass, polname), to_jsonb(p)::text from pg_policy p
      where polrelid in (select oid from c)
    union all select format('trigger %s.%s', tgrelid::regclass, tgname), pg_get_triggerdef(oid) from pg_trigger
      where tgrelid in (select oid from c) and not tgisinternal
    union all select 'function ' || oid::regprocedure, to_jsonb(p)::text from pg_proc p
      where proowner in (select oid from o) and oid >= 16384
    union all select 'type ' || oid::regtype, to_jsonb(t)::text from pg_type t
      where typowner in (select oid from o) and oid >= 16384
    union all select 'schema ' || nspname, to_jsonb(n)::text from pg_namespace n where nspowner in (select oid from o)
      and nspname !~ '^pg_(toast_)?temp_'
    union all select 'database ' || datname, (to_jsonb(d) - array['datfrozenxid', 'datminmxid'])::text from pg_database d
    union all select 'default privileges ' || oid, to_jsonb(d)::text from pg_default_acl d
      where defaclrole in (select oid from o)
    union all select 'settings ' || setdatabase || ' ' || setrole, setconfig::text from pg_db_role_setting
      where setrole not in (select oid from pg_roles where ${isOurs("rolname")})
    union all select 'role ' || rolname, (to_jsonb(r) - 'rolpassword')::text from pg_roles r where not ${isOurs("rolname")}
    union all select format('member %s of %s by %s', m.member::regrole, m.roleid::regrole, m.grantor::regrole),
      (to_jsonb(m) - 'oid')::text from pg_auth_members m join pg_roles g on g.oid = m.roleid join pg_roles t on t.oid = m.member
      where not ${isOurs("g.rolname")} and not ${isOurs("t.rolname")}`);
  const found = new Map(rows.map(({ name, value }) => [name, value]));
  const tables = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c join pg_roles o on o.oid = relowner
    where relkind = 'r' and c.oid >= 16384 and rolname in (current_user, ${application})`;
  for (const { name } of tables) {
    const [row] = await sql.unsafe<{ digest: string }[]>(
      `select count(*) || ' ' || md5(string_agg(t::text, '|' order by t::text)) as digest from ${name} t`,
    );
    found.set(`rows of ${name}`, row!.digest);
  }
  return found;
}

/** What fails, each for a few seconds. */
function faults(world: World, below: Below): Record<string, () => Promise<unknown>> {
  const { postgres, way } = world;
  const wait = (least = 800, most = 2500) => Bun.sleep(least + below(most - least));
  const stopped = async (signal: "SIGINT" | "SIGQUIT") => {
    await postgres.down(signal);
    await wait();
    await postgres.up();
  };
  return {
    frozen: async () => {
      postgres.signal("SIGSTOP");
      // Sometimes for longer than a call may take.
      await (isLong && below(4) === 0 ? Bun.sleep(pluginTimeout * 1500) : wait(1000, 4000));
      postgres.signal("SIGCONT");
    },
    "stopped fast": () => stopped("SIGINT"),
    "stopped at once": () => stopped("SIGQUIT"),
    "backend killed": async () => {
      postgres.signal("SIGKILL");
      await postgres.up();
    },
    refusing: async () => {
      way.refuse(true);
      if (below(2) === 0) way.reset();
      await wait();
      way.refuse(false);
    },
    "refusing the broker": async () => {
      const broker = (option: string) =>
        postgres.asking((sql) => sql.unsafe(`alter role ${world.target.broker} ${option}`));
      await broker("nologin");
      await wait();
      await broker("login");
    },
    cut: async () => {
      way.resetAt(oneOf(below, ["create role", "alter role", "grant ", "drop role", "owner to", "revoke "]));
      await wait();
      way.resetAt(undefined);
      for (let times = 0; times < 10; times++) {
        if (below(2) === 0) way.cut();
        else way.reset();
        await Bun.sleep(below(200));
      }
    },
    silent: async () => {
      way.silence();
      await wait();
    },
    slow: async () => {
      way.delay(20 + below(200));
      await wait(2000, 4000);
      way.delay(0);
    },
    "read-only": async () => {
      const set = (value: string) =>
        postgres.asking(async (sql) => {
          await sql.unsafe(`alter system set default_transaction_read_only = ${value}`);
          await sql`select pg_reload_conf()`;
        });
      await set("on");
      await wait();
      await set("default");
    },
    full: async () => {
      await postgres.fillDisk();
      await wait();
      await postgres.emptyDisk();
      await postgres.up();
    },
    "clock moved": async () => {
      await postgres.moveClock(oneOf(below, ["+3h", "-3h", "+400d", "-2m"]));
      await wait();
      await postgres.moveClock("+0");
    },
    "server killed": async () => {
      const at = below(2);
      await world.servers[at]!.end("SIGKILL");
      await world.startServer(at);
    },
    "worker killed": async () => {
      const at = below(2);
      const { child } = world.workers[at]!;
      child.kill("SIGKILL");
      await child.exited;
      world.startWorker(at);
    },
  };
}

/** Lets everything fail in a random order, again and again. */
async function fail(world: World, below: Below, isOver: () => boolean): Promise<void> {
  const all = faults(world, below);
  let bag: string[] = [];
  while (!isOver()) {
    if (bag.length === 0) bag = Object.keys(all);
    const [name] = bag.splice(below(bag.length), 1);
    count(world.failures, name!);
    await all[name!]!();
    await Bun.sleep(below(800));
  }
}

let made = 0;

/** What the user of a lease does. */
const deeds = (n: number, parent: string): Record<string, string> => ({
  table: `
    create table workshop.mine_t${n} (id serial primary key, name text);
    insert into workshop.mine_t${n} (name) values ('one'), ('two');
    grant select on workshop.mine_t${n} to public;
    alter table workshop.mine_t${n} enable row level security;
    create policy mine on workshop.mine_t${n} to current_user using (true)`,
  function: `create function workshop.mine_f${n}(int) returns int immutable language sql as 'select $1 * 2'`,
  collation: `
    create collation workshop.mine_c${n} from "C";
    create table workshop.mine_v${n} (name text collate workshop.mine_c${n})`,
  "in public": `
    create table public.mine_u${n} (name text);
    create function public.mine_g${n}() returns int language sql security definer as 'select 1'`,
  "large objects": "select lo_create(0) from generate_series(1, 60)",
  prepared: `begin; create table workshop.mine_p${n} (); prepare transaction 'mine ${n}'`,
  "prepared as the parent": `
    begin; alter role current_user password 'mine'; set local role ${parent}; prepare transaction 'mine ${n}'`,
  "default privileges": `
    alter default privileges in schema workshop grant select on tables to public;
    alter default privileges grant all on functions to public`,
  schema: `
    create schema mine_s${n};
    create table mine_s${n}.t (id int);
    create type mine_s${n}.pair as (a int, b int);
    create publication mine_s${n} for table mine_s${n}.t`,
  "temporary slot": `set role ${parent}; select pg_create_physical_replication_slot('mine_${n}', true, true)`,
  "as the parent": `set role ${parent}; create table public.mine_q${n} ()`,
  waiting: "begin; lock table workshop.busy in share mode; select pg_advisory_xact_lock(1)",
  "its own role": "alter role current_user set work_mem = '8MB'; alter role current_user password 'mine'",
});

/** The application builds on what a lease has created. What it commits must remain. */
async function build(world: World, n: number): Promise<void> {
  await world.postgres.asking(async (sql) => {
    await sql.begin(async (tx) => {
      await tx.unsafe(`
        set local role ${application}; set local lock_timeout = '1s';
        create table app.built_${n} (id int check (workshop.mine_f${n}(id) > 0),
          twice int generated always as (workshop.mine_f${n}(id)) stored, half int default workshop.mine_f${n}(3));
        insert into app.built_${n} (id) values (1), (2), (3);
        create unique index on app.built_${n} (workshop.mine_f${n}(id));
        create view app.seen_${n} as select workshop.mine_f${n}(id) from app.built_${n}`);
    });
    await world.note(sql);
  });
}

/** Gets leases, uses them and lets them end, until it is over. @returns its sessions at the target */
async function use(
  world: World,
  name: string,
  { below, counts, isOver }: { below: Below; counts: Record<string, number>; isOver: () => boolean },
): Promise<Sql[]> {
  const { db, ids } = world;
  let me = await world.signIn(name);
  const individualId = await insertIndividual(db, new Date(), name);
  const incidentOf = (lease: number) =>
    drizzleSql`(select incident_id from access_lease where id = ${lease})`;
  const ends: Record<string, (lease: number, fields: Record<string, string>) => Promise<unknown>> = {
    revoked: (lease) => me.call("DELETE", `/access/leases/${lease}`),
    "all revoked": () => me.call("DELETE", `/access/leases/?user=${name}@example.com`),
    expired: (lease) => expire(db, eq(accessLease.id, lease)),
    "incident closed": async (lease) => {
      const closed = { status: "Closed", stableAt: new Date(), closedAt: new Date() } as const;
      await db
        .update(incident)
        .set(closed)
        .where(eq(incident.id, incidentOf(lease)));
    },
    "participant left": async (lease) => {
      const leftAt = new Date();
      await db
        .update(participant)
        .set({ leftAt })
        .where(eq(participant.incidentId, incidentOf(lease)));
    },
    "signed out": async () => {
      await me.call("DELETE", "/tokens/current");
      me = await world.signIn(name);
    },
    // Its lease remains until it expires.
    "client killed": async (_, { host, port, user, password, database }) => {
      const statements = "begin; create table workshop.mine (); select pg_sleep(60)";
      const child = Bun.spawn(["psql", "-c", statements], {
        env: {
          PATH: process.env.PATH,
          PGHOST: host,
          PGPORT: port,
          PGUSER: user,
          PGPASSWORD: password,
          PGDATABASE: database,
        },
        stdio: ["ignore", "ignore", "ignore"],
      });
      await Bun.sleep(below(400));
      child.kill("SIGKILL");
      await child.exited;
    },
  };
  const sessions: Sql[] = [];
  while (!isOver()) {
    const end = oneOf(below, Object.keys(ends));
    const role = oneOf(below, world.roles);
    const wanted: Record<string, unknown> = { role };
    if (["incident closed", "participant left"].includes(end)) {
      const id = await insertEmptyIncident(db, ids, new Date());
      await letJoin(db, id, individualId, new Date());
      const [row] = await db.select().from(incident).where(eq(incident.id, id));
      wanted.incident = row!.name;
    }
    // Now and then, the client does not wait for its lease.
    const signal = below(8) === 0 ? AbortSignal.timeout(below(150)) : undefined;
    const issued = await me.call("POST", "/access/leases/", wanted, {}, signal).catch(() => undefined);
    if (issued?.http !== 201) {
      count(counts, issued ? `not issued: ${issued.http}` : "not issued: no answer");
      await Bun.sleep(100);
      continue;
    }
    const { id, credential } = issued.body;
    const { user, password, port } = credential.fields;
    const session = openSql(`postgres://${user}:${password}@127.0.0.1:${port}/postgres`, {
      max: 1,
      connect_timeout: 3,
    });
    sessions.push(session);
    for (let times = below(3); times >= 0; times--) {
      const n = ++made;
      const all = deeds(n, role === world.roles[0] ? world.target.parent : "shop_ddl");
      const chosen = oneOf(below, Object.keys(all));
      const deed = ignoreErrors(
        (async () => {
          // In one message, because the next one may follow before it is done.
          await session.unsafe(`reset role; ${all[chosen]}`);
          if (chosen === "function") await build(world, n);
          count(counts, chosen);
        })(),
      );
      // Sometimes the lease ends meanwhile.
      if (below(3) > 0) await Promise.race([deed, Bun.sleep(4000)]);
    }
    count(counts, end);
    await ignoreErrors(ends[end]!(id, credential.fields));
  }
  return sessions;
}

const expire = (db: Database, which: SQL | undefined) =>
  db
    .update(accessLease)
    .set({ dueAt: drizzleSql`now()` })
    .where(which);

/** The roles of leases that svc calls Revoked although they exist. */
async function neverGone({ db, postgres }: World): Promise<string[]> {
  const revoked = await db
    .select({ name: accessLease.name })
    .from(accessLease)
    .where(eq(accessLease.state, "Revoked"));
  const names = revoked.map(({ name }) => name);
  const rows = await postgres
    .asking((sql) => sql<{ rolname: string }[]>`select rolname from pg_roles where rolname = any(${names})`)
    .catch(() => []);
  return rows.map(({ rolname }) => rolname);
}

/** What is left of svc at the target, in words. */
const remains = (sql: Sql, heir: string) => sql<{ what: string }[]>`
  select 'role ' || rolname as what from pg_roles where rolname like 'svc\\_%'
  union all select format('session %s of %s, %s since %s: %s', pid, usename, state, state_change, query) from pg_stat_activity
    where backend_type = 'client backend' and usename <> current_user
  union all select 'slot ' || slot_name from pg_replication_slots
  union all select format('prepared transaction %L of %s', gid, owner) from pg_prepared_xacts
  union all select format('membership of %s in %s', member::regrole, roleid::regrole) from pg_auth_members m
    where member::regrole::text = ${heir} or not exists (select from pg_roles where oid = m.member)
  union all select format('default privileges of %s', defaclrole::regrole) from pg_default_acl
    where defaclrole::regrole::text <> ${application}`;

for (const major of isLong ? [18, 15] : [18])
  test(
    `PostgreSQL ${major}: nothing of svc remains after ${seconds} s of faults with seed ${seed}, and others keep what they have`,
    async () => {
      await using world = await World.start(major);
      const { db, postgres, target } = world;
      const counts: Record<string, number> = {};
      const end = performance.now() + seconds * 1000;
      const isOver = () => performance.now() > end && Object.keys(world.failures).length === failureCount;
      const watch = async () => {
        while (!isOver()) {
          expect(await neverGone(world)).toEqual([]);
          await Bun.sleep(500);
        }
      };
      const users = ["carol", "dave", "erin", "frank"].map((name, at) =>
        use(world, name, { below: numbers(seed + at + 1), counts, isOver }),
      );
      const [sessions] = await Promise.all([Promise.all(users), fail(world, numbers(seed), isOver), watch()]);
      console.log(
        `faults ${seed}, PostgreSQL ${major}:`,
        JSON.stringify(world.failures),
        JSON.stringify(counts),
      );
      const unfinished = () => db.select().from(accessLease).where(isNull(accessLease.finishedAt));
      // PostgreSQL's own time limits, and its search for deadlocks, that began before its clock was set back would end when it
      // is that late again. Somebody has to end these sessions.
      await postgres.asking(
        (sql) => sql`select pg_terminate_backend(pid) from pg_stat_activity
          where usename = ${target.broker} and query_start > now() + interval '1 minute'`,
      );
      await expire(db, isNull(accessLease.finishedAt));
      if (!isLong) {
        // Calls of servers end in this time. Later than that, it only takes time until claims of dead processes end.
        await Bun.sleep((pluginTimeout + 1) * 1000);
        await db
          .update(accessLease)
          .set({
            leaseUntil: null,
            dueAt: drizzleSql`now()`,
            createdAt: drizzleSql`created_at - interval '1 hour'`,
          })
          .where(isNull(accessLease.finishedAt));
      }
      const admin = await world.signIn("root");
      await until(
        "all leases to end",
        async () => {
          const left = await unfinished();
          // Retries those whose next attempt is later.
          for (const { id } of left) await admin.call("DELETE", `/access/leases/${id}`);
          if (left.length > 0) await Bun.sleep(1000);
          return left.length === 0;
        },
        isLong ? 180 : 60,
      ).catch(async (error: Error) => {
        const left = (await unfinished()).map(({ id, state, error }) => `${id} ${state} ${error}`);
        const held = await postgres.asking((sql) => remains(sql, ""));
        throw new Error([error.message, ...left, ...held.map(({ what }) => what)].join("\n"));
      });
      expect(await neverGone(world)).toEqual([]);
      await postgres.asking(async (sql) => {
        const left = await remains(sql, `${target.broker}_leftovers`);
        expect(left.map(({ what }) => what)).toEqual([]);
        const now = await describeOthers(sql, target.broker);
        const changed = [...world.others].filter(([name, value]) => now.get(name) !== value);
        expect(changed.map(([name, was]) => `${name}: ${was} -> ${now.get(name)}`)).toEqual([]);
      });
      const trouble = /TypeError|unhandled|internal error|uncaught/i;
      expect(
        world.said.flatMap((said) =>
          said()
            .split("\n")
            .filter((line) => trouble.test(line)),
        ),
      ).toEqual([]);
      await Promise.all(sessions.flat().map((one) => one.end({ timeout: 0 })));
    },
    (seconds + 240) * 1000,
  );
