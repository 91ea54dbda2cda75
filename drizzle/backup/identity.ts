import { Conflict } from "../../platform/errors.ts";
import type { DatabaseObject } from "../revision/drop.ts";
import { inOrder, type Revision, withoutMissingParents } from "../revision/history.ts";
import { afterNoise, splitStatements, wordsOf } from "../revision/statements.ts";
import { readApplied } from "../revision/store.ts";
import { fold } from "../sql_text.ts";
import { type Runner, type Table, tableName } from "./inventory.ts";

/** An applied revision, as a database or a backup records it. */
type Recorded = { id: string; checksum: string };

/**
 * Whether recorded revisions belong to svc: at least one of them matches a revision of this release byte for byte. A
 * table named `revision` proves nothing, as other tools have one too.
 */
export function isOurs(recorded: readonly Recorded[], known: readonly Revision[]): boolean {
  const ours = new Map(known.map(({ id, checksum }) => [id, checksum]));
  return recorded.some(({ id, checksum }) => ours.get(id) === checksum);
}

/**
 * Refuses a database that lacks a table created by its revisions, in the transaction of `sql`. Accepts one with
 * revisions that this release does not know.
 *
 * @throws Conflict listing the tables
 */
export async function refuseIncomplete(
  sql: Runner,
  what: string,
  recorded: readonly Recorded[],
  known: readonly Revision[],
): Promise<void> {
  const ids = new Set(recorded.map(({ id }) => id));
  const ours = known.filter(({ id }) => ids.has(id));
  if (ours.length < ids.size) return;
  const rows = await sql.unsafe(
    "select name from jsonb_array_elements_text($1::text::jsonb) wanted(name) where to_regclass(name) is null order by name",
    [JSON.stringify([...tablesOf(ours).left])],
  );
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(", ");
  throw new Conflict(`${what} lacks tables that its revisions create: ${names}`);
}

/**
 * Tables that the revisions create, by SQL name: those that existed at any time, and those that certainly remain. Where
 * the SQL cannot be followed with certainty, a table does not count as remaining: a correct database must not be
 * refused.
 */
export function tablesOf(revisions: readonly Revision[]): { ever: Set<string>; left: Set<string> } {
  const ever: TableId[] = [];
  let left: TableId[] = [];
  let traceable = true;
  for (const { up } of inOrder(withoutMissingParents(revisions))) {
    // Every revision starts with this search_path.
    let path = "public";
    let isPathCertain = true;
    for (const { text } of splitStatements(up)) {
      const words = wordsOf(text);
      const { made, from, isCertain = false } = madeBy(words, path);
      const isRequired =
        isCertain && (isPathCertain || made?.isQualified) && (!from || left.some((one) => isSame(one, from)));
      const gone = goneBy(words);
      left = left.filter((table) => !gone(table));
      if (made) ever.push(made);
      if (made && isRequired) left.push(made);
      ever.push(...movedBy(words, ever));
      if (hasDynamicSql(words)) {
        left = [];
        // A routine may run at any later time.
        traceable &&= !/\b(function|procedure)\b/i.test(text);
      }
      if (changesPath(words)) {
        isPathCertain = false;
        path = firstInPath(words) ?? "public";
      }
    }
  }
  const names = (tables: readonly TableId[]) => new Set([ownTable, ...tables].map(tableName));
  return { ever: names(ever), left: names(traceable ? left : []) };
}

/**
 * Tells the objects that svc's revisions have created in a database from those of others, in the transaction of `sql`. A
 * database with revisions that this release does not know is all ours: nobody can tell what they create.
 *
 * @throws Conflict if the table `revision` is not svc's
 */
export async function ownObjects(
  sql: Runner,
  known: readonly Revision[],
): Promise<(object: DatabaseObject) => boolean> {
  const applied = await readApplied(sql);
  const ids = new Set(applied?.map(({ id }) => id));
  const revisions = known.filter(({ id }) => ids.has(id));
  return revisions.length < ids.size ? () => true : createdBy(revisions);
}

/** Whether revisions create an object. The schema counts only for tables: others may be moved in many ways. */
export function createdBy(revisions: readonly Revision[]): (object: DatabaseObject) => boolean {
  const { ever } = tablesOf(revisions);
  const statements = revisions.flatMap(({ up }) => splitStatements(up).map(({ text }) => wordsOf(text)));
  const dynamic = new Set(statements.flatMap(dynamicNames));
  const renamed = (words: readonly string[]) => givenName(words.slice(words.lastIndexOf("RENAME")));
  const named = new Set(statements.flatMap((words) => [...givenName(words), ...renamed(words)]));
  return ({ kind, schema, name }) =>
    dynamic.has(name) || (kind === "table" ? ever.has(tableName({ schema, name })) : named.has(name));
}

/** The bare names that a statement gives to objects, if it begins with `words`. */
function givenName(words: readonly string[]): string[] {
  if (words[0] === "RENAME" && words[1] === "TO") return [fold(words[2])];
  if (words[0] !== "CREATE") return [];
  const at = words.findIndex((word) => !beforeName.has(word));
  // Of another kind: an index, for example, goes with its table.
  if (["CREATE", "REPLACE"].includes(words[at - 1] ?? "CREATE")) return [];
  return [fold(words[words[at + 1] === "." ? at + 2 : at])];
}

/** The names that SQL in a DO block or a routine gives to objects; also that of SELECT INTO. */
function dynamicNames(words: readonly string[]): string[] {
  if (["SELECT", "WITH"].includes(words[0] ?? "")) {
    const into = words.indexOf("INTO");
    return into > 0 && words[into - 1] !== "INSERT"
      ? givenName(["CREATE", "TABLE", ...words.slice(into + 1)])
      : [];
  }
  return holdsBody(words) ? stringsIn(words).flatMap(namesWithin) : [];
}

function namesWithin(text: string): string[] {
  const inner = text.replace(/^(e?'|\$\w*\$)|('|\$\w*\$)$/gi, "");
  // A parameter, as $1.
  if (inner === text) return [];
  const words = wordsOf(inner);
  const strings = stringsIn(words);
  // As in format('create table %I', 'name').
  const inserted = /%I/.test(text)
    ? strings.filter((one) => /^'\w+'$/.test(one)).map((one) => one.slice(1, -1))
    : [];
  return [
    ...words.flatMap((_, at) => givenName(words.slice(at))),
    ...inserted,
    ...strings.flatMap(namesWithin),
  ];
}

/** The words between CREATE and the name of what is created. */
const beforeName = new Set(
  `CREATE OR REPLACE TEMP TEMPORARY UNLOGGED RECURSIVE MATERIALIZED FOREIGN VIEW TABLE FUNCTION PROCEDURE AGGREGATE SEQUENCE TYPE
   DOMAIN COLLATION CONVERSION STATISTICS OPERATOR CLASS FAMILY SCHEMA TEXT SEARCH CONFIGURATION DICTIONARY PARSER TEMPLATE
   IF NOT EXISTS`.split(/\s+/),
);

type TableId = Pick<Table, "schema" | "name">;
const ownTable: TableId = { schema: "public", name: "revision" };

function isSame(one: TableId, other: TableId): boolean {
  return one.schema === other.schema && one.name === other.name;
}

/** A table's name in a statement. */
interface Written extends TableId {
  isQualified: boolean;
  /** Its spelling does not depend on PostgreSQL's rules for letters outside ASCII and for U&"...". */
  isPlain: boolean;
  end: number;
}

/** Reads the name at this position; `path` is the schema of a name without one. */
function nameAt(words: readonly string[], at: number, path: string): Written {
  const isQualified = words[at + 1] === ".";
  const end = at + (isQualified ? 3 : 1);
  const parts = isQualified ? [words[at], words[at + 2]] : [words[at]];
  const isPlain = parts.every((part) => /^(?:[A-Z_][A-Z0-9_$]*$|")/.test(part ?? ""));
  const schema = isQualified ? fold(words[at]) : path;
  return {
    schema,
    name: fold(parts.at(-1)),
    isQualified,
    isPlain: isPlain && words[end] !== "." && words[end] !== "&",
    end,
  };
}

/** The table that a statement creates, or that it makes of another one. */
function madeBy(
  words: readonly string[],
  path: string,
): { made?: Written; from?: Written; isCertain?: boolean } {
  const table = words.indexOf("TABLE");
  // CREATE [UNLOGGED] TABLE [IF NOT EXISTS] name
  if (words[0] === "CREATE" && (table === 1 || table === 2) && !isTemporary(words)) {
    const made = nameAt(words, words[table + 1] === "IF" ? table + 4 : table + 1, path);
    const isUsual = (table === 1 || words[1] === "UNLOGGED") && !made.schema.startsWith("pg_temp");
    // It would be dropped together with its parent, or its type.
    const isChild = ["PARTITION", "OF"].includes(words[made.end] ?? "") || words.includes("INHERITS");
    return { made, isCertain: made.isPlain && isUsual && !isChild };
  }
  if (words[0] !== "ALTER" || table !== 1) return {};
  const from = nameAt(words, afterNoise(words, 2), path);
  const [verb, to] = words.slice(from.end);
  const target = nameAt(words, from.end + 2, path);
  const isCertain = from.isPlain && target.isPlain;
  // ALTER TABLE name RENAME TO name, or SET SCHEMA name
  if (verb === "RENAME" && to === "TO") return { made: { ...from, name: target.name }, from, isCertain };
  if (verb === "SET" && to === "SCHEMA") return { made: { ...from, schema: target.name }, from, isCertain };
  return {};
}

/** CREATE [GLOBAL | LOCAL] {TEMP | TEMPORARY} */
function isTemporary(words: readonly string[]): boolean {
  return words[0] === "CREATE" && words.slice(1, 3).some((word) => word === "TEMP" || word === "TEMPORARY");
}

/** Which tables a statement may remove, rename or move, or attach to one with which they would be dropped. */
function goneBy(words: readonly string[]): (table: TableId) => boolean {
  const mentioned = new Set(words.map(fold));
  const byName = ({ name }: TableId) => mentioned.has(name);
  const [verb, kind = ""] = words;
  if (isTemporary(words)) {
    // Hides a table of that name from the statements that follow.
    const table = words.indexOf("TABLE");
    const { name } = nameAt(words, words[table + 1] === "IF" ? table + 4 : table + 1, "");
    return (one) => table > 0 && one.name === name;
  }
  if (["DROP", "ALTER"].includes(verb ?? "") && kind === "SCHEMA")
    return ({ schema }) => mentioned.has(schema);
  if (verb === "DROP") {
    if (["OWNED", "EXTENSION", "ACCESS"].includes(kind)) return () => true;
    return ["TABLE", "FOREIGN"].includes(kind) ? byName : () => false;
  }
  if (verb !== "ALTER") return () => false;
  const moves = words.some((word, at) => ["RENAME TO", "SET SCHEMA"].includes(`${word} ${words[at + 1]}`));
  return moves || words.some((word) => ["ATTACH", "INHERIT", "OF"].includes(word)) ? byName : () => false;
}

/** The tables of a schema that is renamed, by their new names. */
function movedBy(words: readonly string[], tables: readonly TableId[]): TableId[] {
  const [verb, kind, from, rename, to, target] = words;
  if (`${verb} ${kind} ${rename} ${to}` !== "ALTER SCHEMA RENAME TO") return [];
  return tables
    .filter(({ schema }) => schema === fold(from))
    .map(({ name }) => ({ schema: fold(target), name }));
}

function holdsBody(words: readonly string[]): boolean {
  return words[0] === "DO" || words.slice(0, 4).some((word) => word === "FUNCTION" || word === "PROCEDURE");
}

/** Whether a DO block or the body of a routine may do to any table what `goneBy` recognises, or hide it. */
function hasDynamicSql(words: readonly string[]): boolean {
  return (
    holdsBody(words) &&
    stringsIn(words).some((text) =>
      /\b(drop|alter|execute|schema|search_path|reset|temp|temporary)\b/i.test(text),
    )
  );
}

function changesPath(words: readonly string[]): boolean {
  const isSet =
    words[0] === "SET" && words.slice(1, 3).some((word) => /^"?(SEARCH_PATH|SCHEMA)"?$/i.test(word));
  return (
    isSet ||
    ["RESET", "DISCARD"].includes(words[0] ?? "") ||
    stringsIn(words).some((text) => /search_path/i.test(text))
  );
}

/** The schema in which `SET search_path = name, ...` or `SET SCHEMA 'name'` creates tables. */
function firstInPath(words: readonly string[]): string | undefined {
  if (words[0] !== "SET") return undefined;
  const path = words.indexOf("SEARCH_PATH");
  const name = path > 0 ? words[path + 2] : words[words.indexOf("SCHEMA") + 1];
  return fold(name).replace(/^'(.*)'$/, "$1");
}

function stringsIn(words: readonly string[]): string[] {
  return words.filter((word) => /^(e?'|\$)/i.test(word));
}
