import { expect, test } from "bun:test";
import { isAdditive } from "./additive.ts";

test.each([
  "create table a (id int not null)",
  "alter table a add column b int",
  "alter table a add column b int default 1 not null, add column c text",
  "alter table a add column b numeric(10, 2) generated always as (c * 2) stored not null",
  "create index a on b (c)",
  "create type mood as enum ('a')",
  "alter type mood add value 'b'",
  'create table "a" (id int); create unique index i on "public"."a" (id); alter table a add constraint c check (id > 0)',
  "alter table a add column b int references c (id) match full on delete set null",
  "create table a (id int, b int references c on update cascade on delete cascade, d int references e on delete set default)",
  "create table a (id int primary key); create table b (a int references public.a); alter table b add constraint c foreign key (a) references a",
  'alter table "a" add column "b" uuid; alter table "a" add constraint "d" foreign key ("b") references "public"."c"("id") on delete set null on update no action',
  "-- only words",
  "",
])("compatible with the previous release: %s", (sql) => {
  expect(isAdditive(sql)).toBe(true);
});

test.each([
  "drop table a",
  "alter table a drop column b",
  "alter table a rename column b to c",
  "alter table a alter column b set not null",
  "alter table a add column b int not null",
  "alter table a add column b int default 1 not null, add column c int not null",
  "alter table a add column b int, drop column c",
  "alter table a add constraint b check (c > 0)",
  "alter table a add column b int unique",
  "create unique index a on b (c)",
  "alter table a add column b int references c",
  "create table a (id int, b int references c, d int references e on delete cascade)",
  "create table a (id int, b int references c on delete restrict)",
  "create table a (b int); alter table a add constraint d foreign key (b) references c (id) on update cascade",
  "alter table a add column b int default 1; alter table a add constraint d foreign key (b) references c (id) on delete set null",
  "alter table a add column b int; alter table a add constraint d foreign key (b) references c (id)",
  "alter table a add column b int; alter table a add constraint d foreign key (e) references c (id) on delete set null",
  "alter table a add column b int; alter table a add constraint d foreign key (b) references c (id) on delete set null, drop column e",
  "create trigger a before insert on b execute function c()",
  "update a set b = 1",
  "do $$ begin perform 1; end $$",
  "create table a (id int); drop table b",
  "alter table a drop column b, add column c int",
  "alter table a alter column x type int using 1, add column c int",
  "create table if not exists a (id int); alter table a drop column b",
  "create table x.a (id int); alter table public.a drop column b",
  "alter table a drop column add, add column c int",
  "create table a (id int); alter table b add constraint c check (id > 0)",
])("may break the previous release: %s", (sql) => {
  expect(isAdditive(sql)).toBe(false);
});
