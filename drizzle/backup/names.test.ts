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
import { testRevision } from "../../tests/support/database/revision.ts";
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
      const n = quoted(name);
      const kind = `public.${quoted(`${name} kind`)}`;
      const up = `
        create schema ${n};
        create type ${kind} as enum ('a', 'b');
        create table ${n}.${n} (${n} serial primary key, kind ${kind}, word text unique, constraint ${n} check (word <> ''));
        create table ${n}."same" (id int);
        create table public.${n} (id int primary key, word text references ${n}.${n} (word));
        create index on public.${n} (word);
        create view ${n}.seen as select * from public.seeded;
        create function ${n}.f() returns int language sql as $$ select 1 $$`;
      const revisions = [...hostileRevisions, testRevision("4_names", ["3_index"], up)];
      await upgrade({ url, revisions });
      await insertHostileRows(url);
      await using(url, (sql) =>
        sql.unsafe(`
        insert into ${n}.${n} (kind, word) values ('a', 'one'), ('b', E'two\n\\\\.\nlines');
        insert into ${n}."same" values (1), (2);
        insert into public.${n} values (7, 'one')`),
      );
      const before = await contentOf(database.url);
      const confirm = async () => {};
      const options = { path, confirm, revisions, release: "1", clock: new TestClock() };
      await dump({ ...options, url });
      // Into the same database, and into an empty one.
      await using(url, (sql) => sql.unsafe(`delete from public.${n}`));
      await restore({ ...options, url });
      expect(await contentOf(database.url)).toEqual(before);
      await restore({ ...options, url: as(other) });
      expect(await contentOf(other.url)).toEqual(before);
      expect(await readdir(directory.path)).toEqual(["backup"]);
    } finally {
      await using(debian.url, (sql) => sql.unsafe(`drop role ${quoted(role)}`));
    }
  },
);
