import { randomBytes } from "node:crypto";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import { createEmptyTestDatabase } from "../database/database.ts";

/** A database that leases give access to, and the settings of an access role for it. */
export interface AccessTarget extends AsyncDisposable {
  /** The address for a superuser. */
  url: string;
  /** A connection as a superuser. */
  sql: Sql;
  settings: Record<string, string | number>;
  /** An account with CREATEROLE, and ADMIN on the parents. */
  broker: string;
  /** The role whose privileges leases have: it may read the table `shop`. */
  parent: string;
  /** The existing roles of leases. */
  leases(): Promise<string[]>;
  /** Connects with a credential. */
  open(fields: Record<string, string>): Sql;
}

/** Creates a database, a broker account and a parent role on the server at this address. */
export async function startAccessTarget(serverUrl?: string): Promise<AccessTarget> {
  const own = serverUrl === undefined ? await createEmptyTestDatabase() : undefined;
  const url = new URL(serverUrl ?? own!.url);
  const sql = openSql(url.href, { max: 2 });
  const suffix = randomBytes(4).toString("hex");
  const [broker, parent, password] = [`broker_${suffix}`, `shop_reader_${suffix}`, `pass'"\\ ${suffix}`];
  const literal = `'${password.replaceAll("'", "''")}'`;
  await sql.unsafe(`
    create table shop (id int primary key, name text);
    insert into shop values (1, 'one'), (2, 'two');
    create role ${parent} nologin;
    grant usage, create on schema public to ${parent};
    grant select on shop to ${parent};
    create role ${broker} login createrole password ${literal};
    grant ${parent} to ${broker} with admin option;
    grant pg_signal_backend to ${broker}`);
  const { hostname: host, port, pathname } = url;
  const database = pathname.slice(1);
  return {
    url: url.href,
    sql,
    broker,
    parent,
    settings: {
      host,
      port: Number(port),
      database,
      user: broker,
      password,
      sslMode: "disable",
      parents: parent,
      connectionLimit: 5,
    },
    leases: async () => {
      const rows = await sql<{ rolname: string }[]>`
        select r.rolname from pg_roles r join pg_auth_members m on m.member = r.oid
        join pg_roles p on p.oid = m.roleid where p.rolname = ${parent} and r.rolname like 'svc\\_%'`;
      return rows.map(({ rolname }) => rolname);
    },
    open: (fields) => {
      const at = new URL(url);
      at.username = fields.user!;
      at.password = fields.password!;
      at.pathname = `/${fields.database}`;
      return openSql(at.href, { max: 1 });
    },
    [Symbol.asyncDispose]: async () => {
      await sql.end();
      await own?.[Symbol.asyncDispose]();
    },
  };
}

/** The message with which something fails. */
export async function messageOf(promise: Promise<unknown> | unknown): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return (error as Error).message;
  }
  return "no error";
}
