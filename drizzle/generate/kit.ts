import { isDeepStrictEqual } from "node:util";
import { is, SQL } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { checkNames } from "./check_names.ts";
import { literal, quote, tableKey } from "./names.ts";
import { type Column, emptyLike, type Index, type Schema, type Snapshot } from "./snapshot.ts";
import { typeName } from "./types.ts";

// The only file that knows drizzle-kit (0.31): it reads the tables, and writes the difference between two schemas.

type Kit = typeof import("drizzle-kit/api");

/** Three megabytes that only revisions need. An image leaves them out. */
async function loadKit(): Promise<Kit> {
  try {
    return await import("drizzle-kit/api");
  } catch (cause) {
    if ((cause as { code?: string }).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new SvcError(
      "configuration",
      "Revisions are generated with drizzle-kit, which is not installed here: run npm install in a clone",
      { cause },
    );
  }
}

/**
 * Creates the snapshot of a module of tables.
 * @throws InvalidInput for a duplicate name, for what cannot be written as SQL, and for what drizzle-kit refuses
 */
export async function snapshotOf(module: Record<string, unknown>, previousId?: string): Promise<Snapshot> {
  const { generateDrizzleJson } = await loadKit();
  // An object may be exported under several names.
  const things = [...new Set(Object.values(module))];
  checkNames(things);
  const snapshot = quietly(() => generateDrizzleJson({ ...things }, previousId));
  for (const table of things.filter((thing) => is(thing, pg.PgTable))) {
    const { name, schema, columns } = pg.getTableConfig(table);
    const read = snapshot.tables[tableKey({ schema, name })]?.columns ?? {};
    for (const column of columns) correctColumn(read[column.name] as unknown as Column, column, name);
  }
  // Its undefined properties would not survive in a file.
  return JSON.parse(JSON.stringify(snapshot));
}

/** drizzle-kit prints what it refuses, and ends the process. */
function quietly<T>(read: () => T): T {
  const { log, error, warn, info } = console;
  const { exit } = process;
  const printed: string[] = [];
  const keep = (...words: unknown[]) => void printed.push(words.join(" "));
  Object.assign(console, { log: keep, error: keep, warn: keep, info: keep });
  process.exit = () => {
    throw new InvalidInput("schema", Bun.stripANSI(printed.join(" ")).replace(/\s+/g, " ").trim());
  };
  try {
    return read();
  } finally {
    Object.assign(console, { log, error, warn, info });
    process.exit = exit;
  }
}

/** Corrects unescaped defaults, enums that are defined by an object, and the range of a descending identity. */
function correctColumn(read: Column, column: pg.PgColumn, table: string): void {
  const value = defaultOf(column, table);
  if (value === undefined) delete read.default;
  else read.default = value as string;
  let element: object = column;
  while (is(element, pg.PgArray)) element = element.baseColumn;
  if (is(element, pg.PgEnumObjectColumn)) {
    const { schema } = (element as unknown as { enum: { schema?: string } }).enum;
    read.typeSchema = schema || "public";
  }
  const given = column.generatedIdentity?.sequenceOptions;
  if (read.identity?.increment?.startsWith("-") && given?.minValue === undefined) {
    const least: Record<string, string> = { integer: "-2147483648", bigint: "-9223372036854775808" };
    read.identity.minValue = least[column.getSQLType()] ?? "-32768";
  }
}

/** The default as SQL; numbers and booleans as they are. @throws InvalidInput for any other object */
function defaultOf(column: pg.PgColumn, table: string): string | number | boolean | undefined {
  const value: unknown = column.default;
  const type = column.getSQLType().toLowerCase();
  if (value === undefined || value === null) return undefined;
  if (is(value, SQL)) return new pg.PgDialect().sqlToQuery(value).sql;
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return literal(value);
  if (/^jsonb?$/.test(type)) return `${literal(JSON.stringify(value))}::${type}`;
  // Types without a time zone or a time ignore the excess part.
  if (value instanceof Date) return literal(value.toISOString());
  if (Array.isArray(value) && /\[\d*\]$/.test(type)) return literal(arrayText(value));
  throw new InvalidInput(
    "schema",
    `The default of ${table}.${column.name} is an object, which cannot be written as SQL: use sql\`...\``,
  );
}

/** PostgreSQL's array syntax (manual, 8.15.6). */
function arrayText(values: readonly unknown[]): string {
  const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
  const elements = values.map((value) => {
    if (value === null || value === undefined) return "NULL";
    if (Array.isArray(value)) return arrayText(value);
    if (value instanceof Date) return quoted(value.toISOString());
    if (typeof value === "object") return quoted(JSON.stringify(value));
    return typeof value === "string" ? quoted(value) : String(value);
  });
  return `{${elements.join(",")}}`;
}

/** One statement of drizzle-kit's. */
export interface KitStatement {
  sql: string;
  /** Its words before the name: `DROP TABLE`, `ADD COLUMN`, `CREATE UNIQUE INDEX`. */
  kind: string;
  /** The key of the table that it changes. */
  table: string;
  /** What is dropped, created or changed; empty for a table. */
  name: string;
}

/**
 * The statements that lead from one schema to another. The two may not differ by drops and additions at once: drizzle-kit
 * would ask on the terminal whether they are renames.
 *
 * drizzle-kit joins what it compares with `;`, `,` and `--`, does not escape names, takes a type for its own by its
 * first letters, and mistakes names such as `constructor` and `a__added`. It gets tokens in place of all these.
 */
export async function difference(from: Schema, to: Schema): Promise<KitStatement[]> {
  if (isDeepStrictEqual(from, to)) return [];
  const { generateMigration } = await loadKit();
  const veil = new Veil();
  type Json = Parameters<Kit["generateMigration"]>[0];
  const [before, after] = onlyChanged(from, to).map((schema) => veil.cover(schema) as Json);
  const statements = await generateMigration(before!, after!);
  // Row level security is ours: drizzle-kit forgets it where no other table changes.
  return statements
    .filter((sql) => !/ ROW LEVEL SECURITY;\s*$/.test(sql))
    .map((sql) => veil.read(sql.trim()));
}

/** Without the tables that stay the same. */
function onlyChanged(from: Schema, to: Schema): [Schema, Schema] {
  const isChanged = (key: string) => !isDeepStrictEqual(from.tables[key], to.tables[key]);
  const narrow = (schema: Schema): Schema => ({
    ...emptyLike(schema),
    ...schema,
    tables: Object.fromEntries(Object.entries(schema.tables).filter(([key]) => isChanged(key))),
  });
  return [narrow(from), narrow(to)];
}

const place = '(?:"(?<schema>\\w+)"\\.)?"(?<table>\\w+)"';
const shapes = [
  `^ALTER TABLE ${place} (?<kind>(?:ADD|DROP|ALTER) (?:COLUMN|CONSTRAINT)) "(?<name>\\w+)"(?<more> SET NOT NULL| FOREIGN KEY| PRIMARY KEY| UNIQUE| CHECK)?`,
  `^(?<kind>CREATE (?:UNIQUE )?INDEX) "(?<name>\\w+)" ON ${place} `,
  `^(?<kind>(?:CREATE|DROP) POLICY) "(?<name>\\w+)" ON ${place}`,
  `^(?<kind>(?:CREATE|DROP) SCHEMA) "(?<name>\\w+)"`,
  `^(?<kind>(?:CREATE|DROP) (?:MATERIALIZED )?(?:TABLE|VIEW|INDEX|SEQUENCE|TYPE)|ALTER TYPE) ${place}`,
].map((shape) => new RegExp(shape));

const nameKeys = /^(name|schema|tableFrom|tableTo|schemaTo|columns|columnsFrom|columnsTo|to)$/;
const textKeys = /^(default|as|where|value|definition|using|withCheck)$/;
const things =
  /^(tables|enums|sequences|views|columns|indexes|foreignKeys|compositePrimaryKeys|uniqueConstraints|policies|checkConstraints)$/;

/** Tokens for the names and pieces of SQL that disturb drizzle-kit. */
class Veil {
  private readonly hidden: { sql: string; name: string }[] = [];
  private readonly tokens = new Map<string, string>();

  /** A snapshot, or the part of one that is its property `key`. */
  cover(part: unknown, key = ""): unknown {
    if (typeof part === "string") {
      if (key === "tablespace") return this.text(quote(part));
      if (nameKeys.test(key)) return this.name(part);
      if (key === "values") return /^\w+$/.test(part) ? part : this.text(part.replaceAll("'", "''"));
      return textKeys.test(key) && !/^\w+$/.test(part) ? this.text(part) : part;
    }
    if (Array.isArray(part)) return part.map((item) => this.cover(item, typeof item === "string" ? key : ""));
    if (typeof part !== "object" || part === null) return part;
    if (things.test(key)) {
      const covered = Object.values(part).map(
        (thing) => this.cover(thing) as { schema?: string; name: string },
      );
      return Object.fromEntries(covered.map((it) => [it.schema === undefined ? it.name : tableKey(it), it]));
    }
    if (key === "schemas") {
      const names = Object.keys(part).map((name) => this.name(name));
      return Object.fromEntries(names.map((name) => [name, name]));
    }
    if ("isExpression" in part) return this.indexed(part as Index["columns"][number]);
    const own: object = "primaryKey" in part ? this.column(part as Column) : part;
    return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, this.cover(value, name)]));
  }

  /** @throws SvcError for a statement that is not of a known kind */
  read(veiled: string): KitStatement {
    const found = shapes.map((shape) => shape.exec(veiled)?.groups).find(Boolean);
    if (!found)
      throw new SvcError("internal", `drizzle-kit wrote a statement that svc does not know: ${veiled}`);
    const { schema = "", table = "", kind, name = "", more = "" } = found;
    const plain = (word: string) =>
      word.replace(/^svc_veil_(\d+)_$/, (_, at) => this.hidden[Number(at)]!.name);
    const sql = veiled
      // Everything is dropped by name: CASCADE would also drop objects that no one has reviewed.
      .replace(/ CASCADE;$/, ";")
      .replace(/^\t/gm, "  ")
      .replace(/"svc_veil_(\d+)_"|svc_veil_(\d+)_/g, (_, quoted, bare) => this.hidden[quoted ?? bare]!.sql);
    const key = tableKey({ schema: plain(schema), name: plain(table) });
    return { sql, kind: kind + more, table: key, name: plain(name) };
  }

  private text(sql: string, name = sql): string {
    const token = this.tokens.get(sql) ?? `svc_veil_${this.hidden.push({ sql, name }) - 1}_`;
    this.tokens.set(sql, token);
    return token;
  }

  private name(name: string): string {
    const isPlain =
      /^([A-Za-z_]\w*)?$/.test(name) && !/__|^svc_veil_/.test(name) && !(name in Object.prototype);
    return isPlain ? name : this.text(quote(name), name);
  }

  private column({ typeSchema, ...column }: Column): object {
    return { ...column, type: this.text(typeName({ ...column, typeSchema })) };
  }

  /** A column of an index. An operator class would make drizzle-kit forget the order. */
  private indexed({ expression, isExpression, opclass, asc, nulls }: Index["columns"][number]): object {
    const order = `${asc ? "" : " DESC"}${asc && nulls === "last" ? "" : ` NULLS ${nulls?.toUpperCase()}`}`;
    return {
      expression: isExpression ? this.text(expression) : this.name(expression),
      ...{ isExpression, asc, nulls },
      opclass: opclass && this.text(opclass + order),
    };
  }
}
