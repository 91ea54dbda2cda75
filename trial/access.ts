import { randomBytes } from "node:crypto";
import { and, eq, sql } from "drizzle-orm";
import { insertRole } from "../core/access/role_change.ts";
import { type Database, openSql } from "../drizzle/client.ts";
import { accessRole } from "../drizzle/schema/index.ts";

/** The target of the trial's access roles: a second database in its PostgreSQL. */
const database = "trial_shop";
const broker = "trial_broker";

const orders = `
create table shop (id int primary key, name text not null);
create table shop_order (
  id int primary key generated always as identity,
  shop_id int not null references shop,
  state text not null,
  ordered_at timestamptz not null
);
insert into shop values (1, 'Harbour Street'), (2, 'Old Mill'), (3, 'Station');
insert into shop_order (shop_id, state, ordered_at)
  select 1 + n % 3, case when n % 17 = 0 then 'stuck' else 'delivered' end, now() - n * interval '7 minutes'
  from generate_series(1, 500) n;
revoke all on schema public from public;
grant usage on schema public to trial_reader, trial_admin;
grant select on all tables in schema public to trial_reader, trial_admin;
grant insert, update, delete on all tables in schema public to trial_admin;
`;

/**
 * Creates the trial's second database with sample rows, svc's broker account in it, and two access roles: `trial-db` for
 * everyone, and `trial-db-admin`, which an incident's commander or an admin must approve.
 */
export async function createTrialAccess(db: Database, url: string, keySecret: string): Promise<void> {
  const password = randomBytes(24).toString("base64url");
  const server = openSql(url, { max: 1 });
  try {
    await server.unsafe(`create role trial_reader nologin; create role trial_admin nologin;
      create role ${broker} login createrole password '${password}';
      grant trial_reader, trial_admin to ${broker} with admin option;
      grant pg_signal_backend to ${broker}`);
    await server.unsafe(`create database ${database}`);
    await server.unsafe(`revoke all on database ${database} from public;
      grant connect on database ${database} to trial_reader, trial_admin, ${broker}`);
  } finally {
    await server.end();
  }
  const place = new URL(url);
  const target = new URL(url);
  target.pathname = `/${database}`;
  const shop = openSql(target.href, { max: 1 });
  try {
    await shop.unsafe(orders);
  } finally {
    await shop.end();
  }
  const at = new Date();
  const settings = {
    host: place.hostname,
    port: Number(place.port),
    database,
    user: broker,
    sslMode: "disable",
    connectionLimit: 5,
  };
  const common = {
    pluginSlug: "postgresql-role",
    groups: ["*"],
    defaultDuration: 3600,
    maxDuration: 8 * 3600,
    createdAt: at,
    updatedAt: at,
  };
  const roles = [
    {
      ...common,
      slug: "trial-db",
      description: "Read the orders of the shops",
      settings: { ...settings, parents: "trial_reader" },
      approval: "none" as const,
      incidentRequired: false,
      breakGlass: false,
    },
    {
      ...common,
      slug: "trial-db-admin",
      description: "Change the orders of the shops",
      settings: { ...settings, parents: "trial_admin" },
      approval: "commander" as const,
      incidentRequired: true,
      breakGlass: true,
    },
  ];
  await db.transaction(async (tx) => {
    for (const role of roles) await insertRole(tx, { config: { keySecret } }, role, { password });
  });
}

/** Updates the port of the trial's PostgreSQL, which may change with each start. */
export async function moveTrialAccess(db: Database, url: string): Promise<void> {
  const port = Number(new URL(url).port);
  const ofTrial = and(
    eq(accessRole.pluginSlug, "postgresql-role"),
    sql`${accessRole.settings} ->> 'database' = ${database} and ${accessRole.settings} ->> 'user' = ${broker}`,
  );
  await db
    .update(accessRole)
    .set({ settings: sql`${accessRole.settings} || jsonb_build_object('port', ${port}::int)` })
    .where(ofTrial);
}
