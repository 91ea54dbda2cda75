import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { quote, tableKey } from "./names.ts";
import { type Column, emptyLike, type Schema, type Snapshot, type Table } from "./snapshot.ts";
import { typeName } from "./types.ts";

type Kit = typeof import("drizzle-kit/api");

/** Whether drizzle-kit is there: in a clone, and in no image. */
export function hasKit(): boolean {
  try {
    Bun.resolveSync("drizzle-kit/api", import.meta.dir);
    return true;
  } catch {
    return false;
  }
}

// A development dependency of three megabytes: loaded when a revision is written and at no other time.
async function loadKit(): Promise<Kit> {
  try {
    return await import("drizzle-kit/api");
  } catch (cause) {
    if ((cause as { code?: string }).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const why = "Revisions are written in a clone of the source: drizzle-kit is not installed here";
    throw new SvcError("configuration", why, { cause });
  }
}

/**
 * The snapshot of a module of tables.
 * @throws InvalidInput for what drizzle-kit refuses: it prints why to standard output and ends the process
 */
export async function snapshotOf(module: Record<string, unknown>, previousId?: string): Promise<Snapshot> {
  const { generateDrizzleJson } = await loadKit();
  const printed: string[] = [];
  const { log, error, warn, info } = console;
  const { exit } = process;
  const keep = (...words: unknown[]) => void printed.push(words.map(String).join(" "));
  Object.assign(console, { log: keep, error: keep, warn: keep, info: keep });
  process.exit = () => {
    throw new InvalidInput("schema", Bun.stripANSI(printed.join(" ")).replace(/\s+/g, " ").trim());
  };
  try {
    return generateDrizzleJson(module, previousId) as unknown as Snapshot;
  } finally {
    Object.assign(console, { log, error, warn, info });
    process.exit = exit;
  }
}

/**
 * The statements that lead from one schema to another that has more and lacks nothing: whatever is both added and
 * removed makes drizzle-kit ask on a terminal whether it was renamed.
 *
 * drizzle-kit packs what it compares into strings with `;`, `,` and `--` between the parts, never escapes a quote in a
 * name, and takes a type for its own by its first letters (enum "text_kind"). So it sees stand-ins for everything
 * that could disturb it, and what they stand for is put into the finished statement.
 */
export async function additions(from: Schema, to: Schema, expected: number): Promise<string[]> {
  const { generateMigration } = await loadKit();
  const veil = new Veil();
  type Json = Parameters<Kit["generateMigration"]>[0];
  const [before, after] = [veil.cover(from), veil.cover(to)] as unknown as [Json, Json];
  const statements = (await generateMigration(before, after))
    .map((statement) => veil.lift(statement.trim().replace(/^\t/gm, "  ")))
    .filter((statement) => !/^ALTER TABLE .* (ENABLE|DISABLE) ROW LEVEL SECURITY;$/.test(statement));
  if (statements.length !== expected) {
    throw new SvcError(
      "internal",
      `drizzle-kit wrote ${statements.length} statements for ${expected} changes`,
    );
  }
  return statements;
}

/** A schema without anything, to add to. */
export const nothing = (like: Schema): Schema => emptyLike(like) as Schema;

export function withTable(like: Schema, table: Table): Schema {
  return { ...nothing(like), tables: { [tableKey(table)]: table } };
}

/** The statement that adds `part` to a table, of which drizzle-kit needs to know nothing else. */
export async function addToTable(after: Schema, table: Table, part: Partial<Table>): Promise<string> {
  const bare: Table = {
    name: table.name,
    schema: table.schema,
    columns: {},
    indexes: {},
    foreignKeys: {},
    compositePrimaryKeys: {},
    uniqueConstraints: {},
    policies: {},
    checkConstraints: {},
    isRLSEnabled: false,
  };
  const [sql] = await additions(withTable(after, bare), withTable(after, { ...bare, ...part }), 1);
  return sql!;
}

class Veil {
  private readonly hidden: string[] = [];
  private readonly known = new Map<string, string>();

  /** For a piece of SQL. */
  text(sql: string): string {
    const known = this.known.get(sql);
    if (known) return known;
    const token = `svc_veil_${this.hidden.push(sql) - 1}_`;
    this.known.set(sql, token);
    return token;
  }

  /** For a name; the usual ones need no veil. */
  name(name: string): string {
    return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : this.text(quote(name));
  }

  lift(statement: string): string {
    return statement.replace(
      /"svc_veil_(\d+)_"|svc_veil_(\d+)_/g,
      (_, quoted, bare) => this.hidden[Number(quoted ?? bare)]!,
    );
  }

  cover(schema: Schema): Schema {
    const names = (list: string[]) => list.map((name) => this.name(name));
    const place = <T extends { name: string; schema?: string }>(thing: T) => ({
      ...thing,
      name: this.name(thing.name),
      ...(thing.schema === undefined ? {} : { schema: thing.schema && this.name(thing.schema) }),
    });
    const policy = <T extends Schema["policies"][string]>(it: T) => ({
      ...it,
      name: this.name(it.name),
      ...(it.using === undefined ? {} : { using: this.text(it.using) }),
      ...(it.withCheck === undefined ? {} : { withCheck: this.text(it.withCheck) }),
      ...(it.on === undefined ? {} : { on: this.text(it.on) }),
    });
    const table = (it: Schema["tables"][string]): Schema["tables"][string] => ({
      ...place(it),
      columns: rekey(it.columns, (column) => this.column(column, place)),
      indexes: rekey(it.indexes, (index) => ({
        ...index,
        name: this.name(index.name),
        ...(index.where === undefined ? {} : { where: this.text(index.where) }),
        columns: index.columns.map((part) => ({
          ...part,
          expression: part.isExpression ? this.text(part.expression) : this.name(part.expression),
        })),
      })),
      foreignKeys: rekey(it.foreignKeys, (key) => ({
        ...key,
        name: this.name(key.name),
        tableFrom: this.name(key.tableFrom),
        tableTo: this.name(key.tableTo),
        ...(key.schemaTo ? { schemaTo: this.name(key.schemaTo) } : {}),
        columnsFrom: names(key.columnsFrom),
        columnsTo: names(key.columnsTo),
      })),
      compositePrimaryKeys: rekey(it.compositePrimaryKeys, (key) => ({
        name: this.name(key.name),
        columns: names(key.columns),
      })),
      uniqueConstraints: rekey(it.uniqueConstraints, (unique) => ({
        ...unique,
        name: this.name(unique.name),
        columns: names(unique.columns),
      })),
      policies: rekey(it.policies, policy),
      checkConstraints: rekey(it.checkConstraints, (check) => ({
        name: this.name(check.name),
        value: this.text(check.value),
      })),
    });
    return {
      ...schema,
      tables: rekey(schema.tables, table, (it) => `${it.schema || "public"}.${it.name}`),
      enums: rekey(schema.enums, place, (it) => `${it.schema || "public"}.${it.name}`),
      sequences: rekey(schema.sequences, place, (it) => `${it.schema || "public"}.${it.name}`),
      views: rekey(
        schema.views,
        (view) => ({ ...place(view), columns: {}, definition: this.text(view.definition ?? "") }),
        (it) => `${it.schema || "public"}.${it.name}`,
      ),
      policies: rekey(schema.policies, policy),
      schemas: Object.fromEntries(names(Object.values(schema.schemas)).map((name) => [name, name])),
    };
  }

  private column(column: Column, place: (it: NonNullable<Column["identity"]>) => Column["identity"]): Column {
    const { typeSchema: _, ...rest } = column;
    return {
      ...rest,
      name: this.name(column.name),
      type: this.text(typeName(column)),
      ...(column.default === undefined ? {} : { default: this.text(column.default) }),
      ...(column.generated ? { generated: { type: "stored", as: this.text(column.generated.as) } } : {}),
      ...(column.identity ? { identity: place(column.identity) } : {}),
    };
  }
}

function rekey<T extends { name: string }>(
  record: Record<string, T>,
  map: (value: T) => T,
  key: (value: T) => string = ({ name }) => name,
): Record<string, T> {
  return Object.fromEntries(
    Object.values(record).map((value) => {
      const mapped = map(value);
      return [key(mapped), mapped];
    }),
  );
}
