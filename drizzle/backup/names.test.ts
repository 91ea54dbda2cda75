import { beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { TestClock } from "../../tests/support/clock.ts";
import {
  contentOf,
  createDatabaseOn,
  hostileRevisions,
  insertHostileRows,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { type DebianServer, debianServer } from "../../tests/support/database/debian_postgres.ts";
import { upgrade } from "../revision/upgrade.ts";
import { quoted } from "../sql_text.ts";
import { dump } from "./dump.ts";
import { restore } from "./restore.ts";

let debian: DebianServer;
beforeAll(async () => {
  debian = await debianServer();
});

const names = {
  "a space": "svc admin",
  quotes: `it's "quoted"`,
  "a reserved word": "order",
  "a dot": "public.many",
  "a line break": "two\nlines",
  "a line that looks like SQL": "x;\n\\.\nCOPY public.many (id) FROM stdin;\n",
  "a line that looks like a table of contents": "x\n3301; 0 16399 TABLE DATA public revision svc\n; ",
  "letters of other scripts": "Größe 部屋",
  "signs of patterns": "a*b?c|(d)[e]$1\\n",
};

test.each(Object.entries(names))(
  "%s works in every kind of name, including the owner's",
  async (_what, name) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "backup");
    const role = `${name} ${crypto.randomUUID().slice(0, 8)}`;
    await using(debian.url, (sql) => sql.unsafe(`create role ${quoted(role)} login password 'x'`));
    try {
      await using database = await createDatabaseOn(debian.url, `owner ${quoted(role)}`);
      await using other = await createDatabaseOn(debian.url, `owner ${quoted(role)}`);
      const as = ({ url }: { url: string }) =>
        Object.assign(new URL(url), { username: encodeURIComponent(role), password: "x" }).href;
      const url = as(database);
      await upgrade({ url, revisions: hostileRevisions });
      await insertHostileRows(url);
      const n = quoted(name);
      await using(url, (sql) =>
        sql.unsafe(`
        create schema ${n};
        create type public.${quoted(`${name} kind`)} as enum ('a', 'b');
        create table ${n}.${n} (${n} serial primary key, kind public.${quoted(`${name} kind`)}, word text unique, constraint ${n} check (word <> ''));
        insert into ${n}.${n} (kind, word) values ('a', 'one'), ('b', E'two\n\\\\.\nlines');
        create table ${n}."same" (id int); insert into ${n}."same" values (1), (2);
        create table public.${n} (id int primary key, word text references ${n}.${n} (word));
        insert into public.${n} values (7, 'one');
        create index on public.${n} (word);
        create view ${n}.seen as select * from public.seeded;
        create function ${n}.f() returns int language sql as $$ select 1 $$;
        create collation ${n}.${n} from "C"; create collation public.${n} from "C";
        create domain ${n}.sorted as text collate public.${n};
        create text search configuration ${n}.${n} (copy = simple);
        create operator ${n}.=== (leftarg = int, rightarg = int, function = int4eq)`),
      );
      const before = await contentOf(database.url);
      const confirm = async () => {};
      const common = { env: { PATH: debian.tools }, tools: () => [], release: "1", clock: new TestClock() };
      const options = { ...common, path, confirm, revisions: hostileRevisions };
      await dump({ ...options, url, format: "custom" });
      // Into the same database, and into an empty one.
      await using(url, (sql) => sql.unsafe(`delete from public.${n}`));
      await restore({ ...options, url });
      expect(await contentOf(database.url)).toEqual(before);
      await restore({ ...options, url: as(other) });
      expect(await contentOf(other.url)).toEqual(before);
      expect(await readdir(directory.path)).toEqual(["backup"]);
      const env = { PGPASSWORD: new URL(debian.url).password };
      const listed = Bun.spawnSync([join(debian.tools, "pg_restore"), "--file=/dev/null", path], { env });
      expect(listed.exitCode).toBe(0);
    } finally {
      await using(debian.url, (sql) => sql.unsafe(`drop role ${quoted(role)}`));
    }
  },
);
