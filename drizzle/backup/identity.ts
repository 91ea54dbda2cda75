import { Conflict } from "../../platform/errors.ts";
import { inOrder, type Revision, withoutMissingParents } from "../revision/history.ts";
import { afterNoise, splitStatements, wordsOf } from "../revision/statements.ts";
import { fold } from "../sql_text.ts";
import { type Runner, tableName } from "./inventory.ts";

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

/** Tables that the revisions create, by SQL name: those that existed at any time, and those that remain. */
export function tablesOf(revisions: readonly Revision[]): { ever: Set<string>; left: Set<string> } {
  const left = new Set([tableName({ schema: "public", name: "revision" })]);
  const ever = new Set(left);
  const order = inOrder(withoutMissingParents(revisions));
  for (const { text } of order.flatMap(({ up }) => splitStatements(up))) {
    const { made = [], gone = [] } = effectOf(wordsOf(text));
    for (const name of gone) left.delete(name);
    for (const name of made) {
      left.add(name);
      ever.add(name);
    }
  }
  return { ever, left };
}

/** The effect of a statement on table names. */
function effectOf(words: readonly string[]): { made?: string[]; gone?: string[] } {
  const table = words.indexOf("TABLE");
  // CREATE [UNLOGGED] TABLE [IF NOT EXISTS] name
  if (words[0] === "CREATE" && (table === 1 || table === 2)) {
    return { made: [nameAt(words, words[table + 1] === "IF" ? table + 4 : table + 1).text] };
  }
  if (table !== 1) return {};
  let at = afterNoise(words, 2);
  if (words[0] === "DROP") {
    const gone: string[] = [];
    for (;;) {
      const name = nameAt(words, at);
      gone.push(name.text);
      if (words[name.end] !== ",") return { gone };
      at = name.end + 1;
    }
  }
  if (words[0] !== "ALTER") return {};
  const { schema, name, text, end } = nameAt(words, at);
  const [verb, to, target] = words.slice(end);
  // ALTER TABLE name RENAME TO name, or SET SCHEMA name
  if (verb === "RENAME" && to === "TO")
    return { gone: [text], made: [tableName({ schema, name: fold(target) })] };
  if (verb === "SET" && to === "SCHEMA")
    return { gone: [text], made: [tableName({ schema: fold(target), name })] };
  return {};
}

/** Reads the name at this position, and returns where it ends. */
function nameAt(words: readonly string[], at: number) {
  const qualified = words[at + 1] === ".";
  const schema = qualified ? fold(words[at]) : "public";
  const name = fold(words[qualified ? at + 2 : at]);
  return { schema, name, text: tableName({ schema, name }), end: at + (qualified ? 3 : 1) };
}
