import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import { canonicalSchema } from "../../../drizzle/revision/canonical.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import type { TestDatabase } from "./database.ts";
import { testRevision } from "./revision.ts";

/** A temporary directory, removed at the end. */
export async function temporaryDirectory(): Promise<{
  path: string;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const path = await mkdtemp(join(tmpdir(), "svc-backup-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A fresh empty database on the server of `serverUrl`. */
export async function createDatabaseOn(
  serverUrl: string,
  options = "",
): Promise<TestDatabase & { name: string }> {
  const name = `svc_test_${randomBytes(8).toString("hex")}`;
  await using(serverUrl, (sql) => sql.unsafe(`create database ${name} ${options}`));
  return {
    name,
    url: Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href,
    [Symbol.asyncDispose]: () =>
      using(
        serverUrl,
        async (sql) => void (await sql.unsafe(`drop database if exists ${name} with (force)`)),
      ),
  };
}

const templates = new Map<string, Promise<string>>();

/**
 * A database that `prepare` has filled on the server of `serverUrl`: a copy of the first with this name.
 *
 * @param name of what `prepare` does
 */
export async function createPrepared(
  serverUrl: string,
  name: string,
  prepare: (url: string) => Promise<void>,
): Promise<TestDatabase & { name: string }> {
  const key = `${name} on ${serverUrl}`;
  const template = templates.get(key) ?? prepareTemplate(serverUrl, prepare);
  templates.set(key, template);
  return createDatabaseOn(serverUrl, `template ${await template} strategy file_copy`);
}

async function prepareTemplate(serverUrl: string, prepare: (url: string) => Promise<void>): Promise<string> {
  const { name, url } = await createDatabaseOn(serverUrl);
  await prepare(url);
  return name;
}

/** A database at the head of the hostile revisions, with their rows. */
export function createHostile(serverUrl: string): Promise<TestDatabase & { name: string }> {
  return createPrepared(serverUrl, "hostile", async (url) => {
    await upgrade({ url, revisions: hostileRevisions });
    await insertHostileRows(url);
  });
}

/** Opens one connection for the duration of `use`. */
export async function using<T>(url: string, use: (sql: Sql) => PromiseLike<T>): Promise<T> {
  const sql = openSql(url, { max: 1 });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Everything that a backup must restore, in a comparable form: every row, every sequence, the schema. */
export async function contentOf(url: string): Promise<Record<string, unknown>> {
  return using(url, async (sql) => {
    const content: Record<string, unknown> = { schema: await canonicalSchema(sql) };
    const tables = await sql`
      select format('%I.%I', n.nspname, c.relname) as name, c.relkind as kind
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'S', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1`;
    for (const { name, kind } of tables) {
      const columns = kind === "S" ? "(last_value, is_called)" : "t";
      const rows = await sql.unsafe(`select ${columns}::text as row from ${name} t order by 1`);
      content[name] = rows.map(({ row }) => row);
    }
    return content;
  });
}

/**
 * Three revisions that are hard to back up: odd names, generated and identity columns, circular foreign keys, rows and
 * triggers created by a revision, a concurrently created index, a view that depends on a primary key.
 */
export const hostileRevisions = [
  testRevision(
    "1_tables",
    [],
    `create type mood as enum ('calm', 'it''s "loud"', E'new\\nline');
    create table "Odd ""Table""" (
      id bigint generated always as identity primary key,
      t text, "Odd ""column""" text default 'default', b bytea, a text[], j jsonb, m mood, u uuid,
      at timestamptz, day date, n numeric, f float8, v interval, r int4range, x xml,
      up text generated always as (upper(t)) stored,
      s serial, parent bigint references "Odd ""Table""" (id),
      constraint "check it" check (f is null or f > -1e300)
    );
    comment on constraint "check it" on "Odd ""Table""" is 'it''s checked';
    create table chicken (id int primary key, egg int not null);
    create table egg (id int primary key, chicken int not null references chicken (id) deferrable);
    alter table chicken add constraint circle foreign key (egg) references egg (id) on delete cascade;
    comment on constraint circle on chicken is 'which was first?';
    create table seeded (name text primary key, value int not null);
    insert into seeded values ('one', 1), ('two', 2);
    create table parted (id int, part text) partition by list (part);
    create table parted_a partition of parted for values in ('a');
    create table parted_rest partition of parted default;`,
  ),
  testRevision(
    "2_many",
    ["1_tables"],
    `create table many (id bigserial primary key, word text not null, other uuid unique, extra int);
    create index many_word_idx on many (lower(word)) where word <> '';
    comment on index many_word_idx is 'an index''s comment';
    create view many_words as select id, word, other from many group by id;
    create materialized view many_count as select count(*) as rows from many;
    create table many_pointer (id int primary key, many_id bigint references many (id), unique (many_id, id));
    create function shout() returns trigger language plpgsql as $$ begin new.word := upper(new.word); return new; end $$;
    create trigger shout before insert on many for each row execute function shout();`,
  ),
  testRevision(
    "3_index",
    ["2_many"],
    "-- svc: no-transaction\ncreate index concurrently many_extra_idx on many (extra);",
    "-- svc: no-transaction\ndrop index concurrently many_extra_idx;",
    { transactional: false },
  ),
];

/** Rows for them. `many` has enough rows that its indexes are recreated. */
export async function insertHostileRows(url: string): Promise<void> {
  await using(url, async (sql) => {
    await sql.unsafe("set timezone = 'Asia/Kathmandu'; set datestyle = 'german'");
    const texts = [
      "",
      "\\N",
      "\\.",
      "a\\\nb",
      "tab\there",
      "cr\r\nlf",
      "\\t \\\\ \\",
      `'"$$`,
      "\b\f\v",
      "ü 🜚 \u202e",
      "é é",
    ];
    for (const [index, text] of texts.entries()) {
      await sql`
        insert into "Odd ""Table""" (t, "Odd ""column""", b, a, j, m, u, at, day, n, f, v, r, parent) values
          (${text}, ${text}, ${Buffer.from([0, 255, 92, index])}, array[${text}, null, 'NULL', '{"x"}']::text[],
           jsonb_build_object('k', ${text}::text, 'n', null), 'it''s "loud"', gen_random_uuid(),
           '2026-01-02 03:04:05.678901+05:45', '0044-03-15 BC', 1e-30 + ${index}, 'NaN', '1 mon -2 days 03:04:05.000006',
           '[1,)', ${index === 0 ? null : index})`;
    }
    await sql.unsafe(`
      insert into "Odd ""Table""" (at, day, n, f, m) values
        ('infinity', '-infinity', 'NaN', '-infinity'::float8 * -1, E'new\\nline'), (null, null, null, 0.1 + 0.2, null);
      insert into "Odd ""Table""" default values;
      delete from "Odd ""Table""" where t is null and f is null;
      begin; set constraints all deferred;
      insert into egg values (1, 1);
      insert into chicken values (1, 1); commit;
      delete from seeded where name = 'one'; update seeded set value = 22;
      insert into parted select i, chr(97 + i % 3) from generate_series(1, 30) i;
      insert into many (word, other, extra) select 'Word ' || i, gen_random_uuid(), i % 7 from generate_series(1, 12000) i;
      update many set word = 'quiet' where id = 5;
      insert into many_pointer values (1, 5), (2, null);
      refresh materialized view many_count;
      select setval('many_id_seq', 9007199254740995)`);
  });
}
