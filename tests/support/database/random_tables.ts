import { sql } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import type { Rename } from "../../../drizzle/generate/index.ts";
import {
  type ColumnName,
  familyOf,
  isGenerated,
  type Mood,
  mayBeNotNull,
  type RandomColumn,
  type RandomSchema,
  type RandomTable,
  type TableName,
  tableNames,
  targets,
  typeOf,
} from "./random_schema.ts";

/** The names that replace those of the description, for renames. */
export type Names = Record<string, string>;

/** Builds the drizzle tables of a schema. */
export function tablesOf({ tables, mood: values, view }: RandomSchema, names: Names = {}): unknown[] {
  const mood = pg.pgEnum("mood", values as [string, ...string[]]);
  const made: Partial<Record<TableName, pg.PgTable>> = {};
  for (const name of tableNames) {
    const description = tables[name];
    if (description) made[name] = tableOf(name, description, mood, made, names);
  }
  const ids = pg.pgView("v1", { id: pg.integer() }).as(sql.raw('select id, id::text as shown from "t1"'));
  return [
    mood,
    ...Object.values(made),
    ...(view && made.t1 ? [ids, pg.pgSequence("s1", { startWith: 5 })] : []),
  ];
}

function tableOf(
  tableName: TableName,
  { id, key, columns }: RandomTable,
  mood: Mood,
  made: Partial<Record<TableName, pg.PgTable>>,
  names: Names,
): pg.PgTable {
  const actual = (described: string) => names[described] ?? described;
  const name = actual(tableName);
  const builders: Record<string, pg.PgColumnBuilderBase> = { id: idOf(id, key === "primary") };
  for (const [columnName, description] of Object.entries(columns)) {
    builders[actual(columnName)] = columnOf(columnName, description, columns, mood, actual("n1"));
  }
  return pg.pgTable(name, builders, (self) => {
    const extra: pg.PgTableExtraConfigValue[] = [];
    const at = (column: string) =>
      (self as Record<string, pg.AnyPgColumn & pg.ExtraConfigColumn>)[actual(column)]!;
    const composite = ["n1", "u1"].find((column) => columns[column as ColumnName]);
    if (key === "composite" && composite) extra.push(pg.primaryKey({ columns: [at("id"), at(composite)] }));
    if (key !== "primary") extra.push(pg.unique(`${name}_id`).on(at("id")));
    for (const [column, it] of Object.entries(columns)) {
      const family = familyOf(column);
      const type = typeOf(column, it);
      const label = `${name}_${actual(column)}`;
      const quoted = `"${actual(column)}"`;
      if (it.unique && family.differs) extra.push(pg.unique(`${label}_unique`).on(at(column)));
      if (it.check && family.check)
        extra.push(pg.check(`${label}_check`, sql.raw(family.check(quoted, type))));
      const target = made[targets[column]!];
      if (target) {
        extra.push(
          pg
            .foreignKey({
              columns: [at(column)],
              foreignColumns: [(target as unknown as Record<string, pg.AnyPgColumn>).id!],
            })
            .onDelete(it.onDelete),
        );
      }
      if (!family.indexes) continue;
      const index = pg.index(`${label}_${it.index}`);
      if (it.index === "plain") extra.push(index.on(at(column)));
      if (it.index === "desc") extra.push(index.on(at(column).desc(), at("id")));
      if (it.index === "partial") extra.push(index.on(at("id")).where(sql.raw(`${quoted} is not null`)));
      if (it.index === "expression" && family.expression)
        extra.push(index.on(sql.raw(family.expression(quoted, type))));
      if (it.index === "unique" && family.differs)
        extra.push(pg.uniqueIndex(`${label}_unique_index`).on(at(column)));
    }
    return extra;
  });
}

function idOf(id: RandomTable["id"], primary: boolean): pg.PgColumnBuilderBase {
  const builder = {
    integer: () => pg.integer().notNull(),
    bigint: () => pg.bigint({ mode: "number" }).notNull(),
    serial: () => pg.serial(),
    bigserial: () => pg.bigserial({ mode: "number" }),
    identity: () => pg.integer().generatedAlwaysAsIdentity(),
    "by default": () =>
      pg.bigint({ mode: "number" }).generatedByDefaultAsIdentity({ startWith: 50, cache: 2 }),
  }[id]() as unknown as { primaryKey(): pg.PgColumnBuilderBase } & pg.PgColumnBuilderBase;
  return primary ? builder.primaryKey() : builder;
}

function columnOf(
  name: string,
  description: RandomColumn,
  columns: RandomTable["columns"],
  mood: Mood,
  source: string,
): pg.PgColumnBuilderBase {
  type Builder = pg.PgColumnBuilderBase & {
    notNull(): Builder;
    default(value: unknown): Builder;
    generatedAlwaysAs(value: unknown): Builder;
  };
  const family = familyOf(name);
  const type = typeOf(name, description);
  const builder = family.types[type]!(mood) as Builder;
  if (isGenerated(name, description, columns)) {
    return builder.generatedAlwaysAs(sql.raw(`cast(cast("${source}" as numeric) as integer)`));
  }
  if (description.notNull && mayBeNotNull(name)) builder.notNull();
  if (description.default && family.default) builder.default(sql.raw(family.default(type)));
  return builder;
}

/** The renames that lead to the names of the second schema. */
export function renamesOf(from: RandomSchema, to: RandomSchema, names: Names): Rename[] {
  return tableNames.flatMap((table) => {
    const [had, has] = [from.tables[table], to.tables[table]];
    if (!had || !has) return [];
    const columns = Object.keys(names).filter(
      (name) => had.columns[name as ColumnName] && has.columns[name as ColumnName],
    );
    const named = names[table];
    return [
      ...columns.map((name): Rename => ({ table, from: name, to: names[name]!, kind: "column" })),
      ...(named ? [{ table, from: table, to: named, kind: "table" } as const] : []),
    ];
  });
}
