import { SvcError } from "../../platform/errors.ts";
import { nameParts, shownName } from "../sql_text.ts";
import { actionsIn, afterNoise, commentsOf, nameAt, splitStatements, wordsOf } from "./statements.ts";

/**
 * What a revision's SQL declares about itself, in comments on their own lines:
 *
 *     -- svc: no-transaction                  its statements cannot run in a transaction
 *     -- svc: irreversible REASON             this revision cannot be reverted
 *
 * and above the statement concerned:
 *
 *     -- svc: data-loss table NAME            the rows of this table are lost
 *     -- svc: data-loss column TABLE.NAME     the values of this column are lost
 *     -- svc: data-loss column TABLE.NAME where CONDITION -- WORDS    the values for which the SQL condition holds
 *     -- svc: data-loss position of sequence NAME    the sequence's position is lost
 *     -- svc: data-loss TEXT                  something else is lost
 *     -- svc: no-data-loss REASON             nothing is lost, although it drops a table or a column
 */
export interface Marks {
  transactional: boolean;
  /** Why the revision cannot be reverted. */
  irreversible?: string;
  losses: Loss[];
}

export type Loss =
  | { kind: "table"; table: string }
  | { kind: "column"; table: string; column: string; where?: string; words?: string }
  | { kind: "sequence"; sequence: string }
  /** The tables and columns that a statement removes without naming them, as with CASCADE. No mark declares it. */
  | { kind: "removal"; removal: string }
  | { kind: "other"; text: string };

/** One mark: its keyword, the text after it, and the comment's offset in the SQL. */
export interface Mark {
  word: string;
  rest: string;
  at: number;
}

/** The marks in a SQL text, in order. Lines inside a string or a function body do not count. */
export function marksIn(sql: string): Mark[] {
  if (!sql.includes("svc:")) return [];
  return commentsOf(sql).flatMap(({ text, at }) => {
    const [, mark] = text.match(/^--[ \t]*svc:[ \t]*(.*?)[ \t]*$/) ?? [];
    const line = sql.slice(sql.lastIndexOf("\n", at - 1) + 1, at);
    if (mark === undefined || line.trim() !== "") return [];
    const [, word = "", rest = ""] = mark.match(/^(\S+)\s*(.*)$/) ?? [];
    return [{ word, rest, at }];
  });
}

/** @throws SvcError `configuration` for an unknown mark, since a misspelt one would protect nothing */
export function readMarks(sql: string): Marks {
  const marks: Marks = { transactional: true, losses: [] };
  for (const { word, rest } of marksIn(sql)) {
    if (word === "no-transaction" && rest === "") marks.transactional = false;
    else if (word === "irreversible") marks.irreversible = rest || "no reason is given";
    else if (word === "data-loss") marks.losses.push(lossOf(rest));
    else if (word === "no-data-loss" && rest !== "") continue;
    else throw new SvcError("configuration", `unknown mark "-- svc: ${[word, rest].join(" ").trim()}"`);
  }
  return marks;
}

/** Parses the text of a `data-loss` mark. Text that does not parse becomes a loss in words, which always counts. */
function lossOf(text: string): Loss {
  const other: Loss = { kind: "other", text: text || "data" };
  const [, kind, rest = ""] = text.match(/^(table|column|position of sequence) (\S.*)$/) ?? [];
  const [, name = "", where] = rest.match(columnPattern) ?? [];
  const parts = nameParts(kind === "column" ? name : rest);
  if (parts.length === 0) return other;
  if (kind === "table") return { kind, table: shownName(parts) };
  if (kind !== "column") return { kind: "sequence", sequence: shownName(parts) };
  if (parts.length < 2) return other;
  const place = { kind, table: shownName(parts.slice(0, -1)), column: shownName(parts.slice(-1)) } as const;
  if (where === undefined) return place;
  const note = commentsOf(where).at(-1);
  const words = note?.text.replace(/^--\s*/, "");
  return {
    ...place,
    where: (note ? where.slice(0, note.at) : where).trim(),
    ...(words ? { words } : {}),
  };
}

/** A name, and an optional condition after it. */
const columnPattern =
  /^((?:(?:U&)?"(?:[^"]|"")+"|[^\s".]+)(?:\.(?:(?:U&)?"(?:[^"]|"")+"|[^\s".]+))*)(?: where (.+))?$/i;

const transactionWords = new Set([
  "BEGIN",
  "START",
  "COMMIT",
  "END",
  "ROLLBACK",
  "ABORT",
  "SAVEPOINT",
  "RELEASE",
]);

/**
 * Checks that the text contains only what a revision may contain. Its own BEGIN or COMMIT would end the transaction
 * that records the revision; without a transaction, each of several statements must be safe to run again.
 * @throws SvcError `configuration`
 */
export function checkStatements(what: string, sql: string, { transactional }: Marks): void {
  const statements = splitStatements(sql);
  if (!transactional && statements.length > 1) {
    const { text } = statements.find((one) => !isResumable(one.text)) ?? {};
    if (text !== undefined) {
      const line = text.replace(/\s+/g, " ").trim().slice(0, 80);
      throw new SvcError(
        "configuration",
        `${what} runs without a transaction, so each of several statements must be safe to run again, and this one is not: ${line}. Move it to a separate revision`,
      );
    }
  }
  for (const { text } of statements) {
    const words = wordsOf(text);
    const [first = "", second = ""] = words;
    if (/^CREATE (UNIQUE )?INDEX CONCURRENTLY ON /.test(`${words.slice(0, 5).join(" ")} `)) {
      throw new SvcError(
        "configuration",
        `${what}: CREATE INDEX CONCURRENTLY needs a name for the index, so that it can be found again`,
      );
    }
    if (transactionWords.has(first) || (first === "PREPARE" && second === "TRANSACTION")) {
      throw new SvcError(
        "configuration",
        `${what} holds ${first}: each revision already runs in a transaction`,
      );
    }
  }
}

/** Whether each statement can simply be run again if it was interrupted, or done but not recorded. */
export function isResumable(sql: string): boolean {
  return splitStatements(sql).every(({ text }) => {
    const words = wordsOf(text);
    if (concurrentIndex(words)) return true;
    if (["REINDEX", "VACUUM", "ANALYZE", "CLUSTER"].includes(words[0] ?? "")) return true;
    if (/^(CREATE( [A-Z]+){1,3} IF NOT|DROP( [A-Z]+){1,3} IF) EXISTS /.test(words.join(" "))) return true;
    return words[0] === "ALTER" && ["TABLE", "TYPE"].includes(words[1] ?? "") && isRepeatable(words);
  });
}

/**
 * Whether each action of `ALTER TABLE | TYPE` says IF [NOT] EXISTS. The IF EXISTS of the table does not count: `ALTER
 * TABLE IF EXISTS t ALTER c TYPE bigint USING c * 100` would multiply twice.
 */
function isRepeatable(words: readonly string[]): boolean {
  const actions = actionsIn(words.slice(nameAt(words, afterNoise(words, 2)).end));
  const repeatable = /^(ADD (COLUMN |VALUE )?IF NOT|DROP (COLUMN |CONSTRAINT |ATTRIBUTE )?IF) EXISTS /;
  return actions.every((action) => repeatable.test(action.join(" ")));
}

/** The index in `CREATE | DROP INDEX CONCURRENTLY`. */
export interface ConcurrentIndex {
  name: string;
  /** For CREATE. `copy` is the table's name without its schema, `rest` the position of the first word after it. */
  created?: { unique: boolean; table: string; copy: string; rest: number };
}

/** A new index has no schema of its own, because it is in that of its table. */
export function concurrentIndex(words: readonly string[]): ConcurrentIndex | undefined {
  const at = words.indexOf("INDEX");
  if (words[at + 1] !== "CONCURRENTLY" || !/^(CREATE( UNIQUE)?|DROP)$/.test(words.slice(0, at).join(" ")))
    return undefined;
  let from = at + 2;
  if (words[from] === "IF") from += words[from + 1] === "NOT" ? 3 : 2;
  const { end } = nameAt(words, from);
  const name = words.slice(from, end);
  // `wordsOf` capitalised unquoted names; PostgreSQL folds them to lower case.
  const written = () => name.map((word) => (word.startsWith('"') ? word : word.toLowerCase())).join("");
  if (words[0] !== "CREATE") return { name: written() };
  const first = afterNoise(words, end + 1);
  if (words[first + 1] === ".") name.unshift(words[first]!, ".");
  const { name: table, end: rest } = nameAt(words, first);
  const { name: copy } = nameAt(words, rest - 1);
  return { name: written(), created: { unique: at === 2, table, copy, rest } };
}
