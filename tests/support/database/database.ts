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
  const server = await postgresServer();
  server.template ??= prepareTemplate(server);
  return createCopy(server, await server.template);
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
  return createCopy(await postgresServer(), "template1");
}

interface PostgresServer {
  url: string;
  /** One connection, which all files of this process share. */
  sql: Sql;
  /** The name of the database at head. */
  template?: Promise<string>;
}

/** By their addresses. A file may set SVC_TEST_DATABASE_URL to a server of its own for a while. */
const servers = new Map<string, PostgresServer>();
let started: Promise<string> | undefined;

/**
 * The server of the run, which scripts/test.ts starts. `bun test one.test.ts` starts one for its process, which is removed
 * with that process (see drizzle/embedded.ts).
 */
export async function testServerUrl(): Promise<string> {
  if (process.env.SVC_TEST_DATABASE_URL) return process.env.SVC_TEST_DATABASE_URL;
  started ??= startOwn();
  return started;
}

async function postgresServer(): Promise<PostgresServer> {
  const url = await testServerUrl();
  const known = servers.get(url);
  if (known) return known;
  const server = { url, sql: openSql(url, { max: 1 }) };
  servers.set(url, server);
  return server;
}

async function startOwn(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  const { url } = await startEmbeddedPostgres({ directory, durable: false, temporary: true });
  // For child processes.
  process.env.SVC_TEST_DATABASE_URL = url;
  return url;
}

/** Creates the template, named by its revisions and renamed when complete, so no old or unfinished template is copied. */
async function prepareTemplate({ url, sql }: PostgresServer): Promise<string> {
  const revisions = await readRevisions();
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(revisions)).digest("hex").slice(0, 16);
  const name = `svc_template_${digest}`;
  // Concurrent test processes create it once.
  await sql`select pg_advisory_lock(420)`;
  try {
    if ((await sql`select from pg_database where datname = ${name}`).length > 0) return name;
    const unfinished = `${name}_unfinished`;
    await sql`drop database if exists ${sql(unfinished)} with (force)`;
    await copyDatabase(sql, unfinished, "template1");
    await upgrade({ url: withDatabase(url, unfinished) });
    // The first connection after a schema change writes a cache of the schema, which the copies then share.
    const first = openSql(withDatabase(url, unfinished), { max: 1 });
    await first`select 1`;
    await first.end();
    await sql`alter database ${sql(unfinished)} rename to ${sql(name)}`;
    return name;
  } finally {
    await sql`select pg_advisory_unlock(420)`;
  }
}

async function createCopy({ url, sql }: PostgresServer, template: string): Promise<TestDatabase> {
  const name = `svc_test_${randomBytes(8).toString("hex")}`;
  await copyDatabase(sql, name, template);
  return {
    url: withDatabase(url, name),
    [Symbol.asyncDispose]: async () => {
      await sql`drop database if exists ${sql(name)} with (force)`;
    },
  };
}

/**
 * Copies the template's files instead of its blocks through the WAL. Since PostgreSQL 18, the kernel can clone the files. A
 * new database then takes 16 ms of processor time instead of 135.
 */
async function copyDatabase(sql: Sql, name: string, from: string): Promise<void> {
  await sql`select set_config(name, 'clone', false) from pg_settings where name = 'file_copy_method'`;
  await sql`create database ${sql(name)} template ${sql(from)} strategy file_copy`;
}

function withDatabase(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
