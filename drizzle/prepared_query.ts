import { Column, is, SQL } from "drizzle-orm";
import { PgPreparedQuery, PgTransaction } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "./client.ts";

type Asked = Database | Transaction;

/**
 * A prepared query with placeholders, built once per database, and once for all transactions. Building it takes drizzle
 * longer than PostgreSQL takes to answer.
 */
export function preparedQuery<Query>(make: (db: Asked) => Query): (db: Asked) => Query {
  const queries = new WeakMap<Asked, Query>();
  let first: Query | undefined;
  const build = (db: Asked) => withQuickRows(make(db));
  return (db) => {
    const known = queries.get(db);
    if (known) return known;
    if (is(db, PgTransaction)) first ??= build(db);
    const query = is(db, PgTransaction) ? within(db, first!, build) : build(db);
    queries.set(db, query);
    return query;
  };
}

/** The same query in another transaction: what differs is the client that drizzle sends it with. */
function within<Query>(tx: Asked, first: Query, build: (db: Asked) => Query): Query {
  if (!is(first, PgPreparedQuery)) return build(tx);
  const { client } = (tx as unknown as { session: { client: unknown } }).session;
  return Object.create(first, { client: { value: client } }) as Query;
}

type Row = readonly unknown[];

interface Decoder {
  mapFromDriverValue(value: unknown): unknown;
}

interface Selected {
  path: readonly string[];
  field: unknown;
}

/** What drizzle has of a prepared query. */
interface Prepared {
  fields?: readonly Selected[];
  /** Has an entry for each joined table. */
  joinsNotNullableMap?: Readonly<Record<string, boolean>>;
  customResultMapper?: (rows: readonly Row[]) => unknown[];
}

/**
 * Compiles a function that reads the rows of a prepared query: drizzle looks up for each value how to decode it, and where
 * it belongs. Outer joins are left to drizzle, because it turns their missing records into null.
 */
export function withQuickRows<Query>(query: Query): Query {
  const prepared = query as Prepared;
  const { fields, joinsNotNullableMap: joins = {} } = prepared;
  if (!fields || prepared.customResultMapper || !Object.values(joins).every(Boolean)) return query;
  const decoders = fields.map(({ field }) => decoderOf(field));
  const values = fields.map(({ path }, at) => {
    const [row, decoder] = [`row[${at}]`, `decoders[${at}]`];
    const code = isPlain(decoders[at]!)
      ? row
      : `${row} === null ? null : ${decoder}.mapFromDriverValue(${row})`;
    return { path, code };
  });
  // Only names of our columns and numbers become code.
  const compile = new Function("decoders", `return (rows) => rows.map((row) => (${objectCode(values)}))`);
  prepared.customResultMapper = compile(decoders);
  return query;
}

function decoderOf(field: unknown): Decoder {
  if (is(field, Column)) return field;
  const { decoder } = (is(field, SQL) ? field : (field as { sql: SQL }).sql) as unknown as {
    decoder: Decoder;
  };
  return decoder;
}

const isPlain = ({ mapFromDriverValue }: Decoder) =>
  mapFromDriverValue === Column.prototype.mapFromDriverValue;

function objectCode(values: readonly { path: readonly string[]; code: string }[]): string {
  const members = [...Map.groupBy(values, ({ path }) => path[0])].map(([name, group]) => {
    const [{ path, code }] = group as [(typeof group)[0]];
    const inner = group.map(({ path, code }) => ({ path: path.slice(1), code }));
    return `${JSON.stringify(name)}: ${path.length === 1 ? code : objectCode(inner)}`;
  });
  return `{ ${members.join(", ")} }`;
}
