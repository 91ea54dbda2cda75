import { afterAll, beforeAll } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DatabaseClient, openDatabase, openSql, type Sql } from "../../../drizzle/client.ts";
import { startEmbeddedPostgres } from "../../../drizzle/embedded.ts";
import { readRevisions } from "../../../drizzle/revision/history.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";

export interface TestDatabase {
  /** The address for a superuser. The schema is at head and empty. */
  url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A fresh database at head, copied from a template that is created once per server. */
export async function createTestDatabase(): Promise<TestDatabase> {
  template ??= prepareTemplate();
  const { url: serverUrl, name: templateName } = await template;
  const name = `svc_test_${randomBytes(8).toString("hex")}`;
  await withSql(serverUrl, (sql) => copyDatabase(sql, name, templateName));
  return {
    url: withDatabase(serverUrl, name),
    [Symbol.asyncDispose]: async () => {
      await withSql(serverUrl, (sql) => sql`drop database if exists ${sql(name)} with (force)`);
    },
  };
}

/** Creates such a database and a pool of connections for a whole file. */
export function useDatabase(poolSize: number): Pick<DatabaseClient, "db"> & { url: string } {
  let database: TestDatabase;
  let client: DatabaseClient;
  beforeAll(async () => {
    database = await createTestDatabase();
    client = openDatabase(database.url, poolSize);
  });
  afterAll(async () => {
    await client.close();
    await database[Symbol.asyncDispose]();
  });
  return {
    get db() {
      return client.db;
    },
    get url() {
      return database.url;
    },
  };
}

/** A fresh database without our schema, for tests of the schema engine. */
export async function createEmptyTestDatabase(): Promise<TestDatabase> {
  const serverUrl = await testServerUrl();
  const name = `svc_test_${randomBytes(8).toString("hex")}`;
  await withSql(serverUrl, (sql) => copyDatabase(sql, name, "template1"));
  return {
    url: withDatabase(serverUrl, name),
    [Symbol.asyncDispose]: async () => {
      await withSql(serverUrl, (sql) => sql`drop database if exists ${sql(name)} with (force)`);
    },
  };
}

let template: Promise<{ url: string; name: string }> | undefined;
let server: Promise<string> | undefined;

/**
 * The server of the run, which scripts/test.ts starts. `bun test one.test.ts` starts one for its process, which is removed
 * with that process (see drizzle/embedded.ts).
 */
export function testServerUrl(): Promise<string> {
  server ??= process.env.SVC_TEST_DATABASE_URL
    ? Promise.resolve(process.env.SVC_TEST_DATABASE_URL)
    : startOwn();
  return server;
}

async function startOwn(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  const { url } = await startEmbeddedPostgres({ directory, durable: false, temporary: true });
  // For child processes, and for other files in this process, which have separate modules (--isolate).
  process.env.SVC_TEST_DATABASE_URL = url;
  return url;
}

/** Creates the template, named by its revisions and renamed when complete, so no old or unfinished template is copied. */
async function prepareTemplate(): Promise<{ url: string; name: string }> {
  const url = await testServerUrl();
  const revisions = await readRevisions();
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(revisions)).digest("hex").slice(0, 16);
  const name = `svc_template_${digest}`;
  await withSql(url, async (sql) => {
    // Concurrent test processes create it once.
    await sql`select pg_advisory_lock(420)`;
    if ((await sql`select from pg_database where datname = ${name}`).length > 0) return;
    const unfinished = `${name}_unfinished`;
    await sql`drop database if exists ${sql(unfinished)} with (force)`;
    await copyDatabase(sql, unfinished, "template1");
    await upgrade({ url: withDatabase(url, unfinished) });
    // The first connection after a schema change writes a cache of the schema, which the copies then share.
    await withSql(withDatabase(url, unfinished), (connected) => connected`select 1`);
    await sql`alter database ${sql(unfinished)} rename to ${sql(name)}`;
  });
  return { url, name };
}

/**
 * Copies the template's files instead of its blocks through the WAL. Since PostgreSQL 18, the kernel can clone the files. A
 * new database then takes 16 ms of processor time instead of 135.
 */
async function copyDatabase(sql: Sql, name: string, from: string): Promise<void> {
  await sql`select set_config(name, 'clone', false) from pg_settings where name = 'file_copy_method'`;
  await sql`create database ${sql(name)} template ${sql(from)} strategy file_copy`;
}

async function withSql<T>(url: string, use: (sql: Sql) => PromiseLike<T>): Promise<T> {
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

function withDatabase(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
