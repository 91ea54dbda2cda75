import { SvcError } from "../../platform/errors.ts";
import { nameParts, shownName } from "../sql_text.ts";
import { afterNoise, commentsOf, nameAt, type Statement, splitStatements, wordsOf } from "./statements.ts";

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
  /** Whatever a statement without a mark removes. */
  | { kind: "removal"; removal: string }
  | { kind: "other"; text: string };

/** One mark: its keyword, the text after it, and the comment's offset in the SQL. */
interface Mark {
  word: string;
  rest: string;
  at: number;
}

/** The marks in a SQL text, in order. Lines inside a string or a function body do not count. */
function marksIn(sql: string): Mark[] {
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

/** A statement, and what it might lose. */
interface Losing {
  statement: Statement;
  losses: Loss[];
}

/** The statements that may lose rows or values: those with a mark, and without one those that may remove something. */
export function losingStatements(sql: string): Losing[] {
  const marks = marksIn(sql);
  return splitStatements(sql).flatMap((statement) => {
    const end = statement.offset + statement.text.length;
    const own = marks.splice(0, marks.findLastIndex(({ at }) => at < end) + 1);
    const isJudged = own.some(({ word }) => word === "data-loss" || word === "no-data-loss");
    const marked = own.flatMap(({ word, rest }) => (word === "data-loss" ? [lossOf(rest)] : []));
    const removal = sql.slice(statement.start, end);
    const losses = isJudged ? marked : mayRemove(removal) ? [{ kind: "removal" as const, removal }] : [];
    return losses.length === 0 ? [] : [{ statement, losses }];
  });
}

/** Whether a statement may remove tables or columns. A broad check, because the statement is then tried. */
function mayRemove(statement: string): boolean {
  if (!/\b(drop|truncate)\b/i.test(statement)) return false;
  const words = wordsOf(statement);
  const [first, second = ""] = words;
  if (first === "TRUNCATE") return true;
  if (first === "DROP") return ["TABLE", "EXTENSION", "OWNED"].includes(second) || words.includes("CASCADE");
  return first === "ALTER" && /\bDROP (?!CONSTRAINT |NOT NULL|DEFAULT)|\bCASCADE\b/.test(words.join(" "));
}

const transactionWords = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"];

/**
 * Checks that the text contains only what a revision may contain. Its own BEGIN or COMMIT would end the transaction that
 * records the revision; without a transaction, each of several statements must be safe to run again, and none may lose data,
 * because rows may be written between check and statement.
 * @throws SvcError `configuration`
 */
export function checkStatements(
  what: string,
  sql: string,
  { transactional }: Pick<Marks, "transactional">,
): void {
  const refuse = (text: string) => new SvcError("configuration", `${what} ${text}`);
  const beginning = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, 80);
  const statements = splitStatements(sql);
  if (!transactional) {
    const fixed = statements.length > 1 && statements.find((one) => !isResumable(one.text));
    if (fixed)
      throw refuse(
        `runs without a transaction, so each of several statements must be safe to run again, and this one is not: ${beginning(fixed.text)}. Move it to a separate revision`,
      );
    const [losing] = losingStatements(sql);
    if (losing)
      throw refuse(
        `runs without a transaction, so it may not lose data: ${beginning(sql.slice(losing.statement.start))}. Move this statement to a revision with a transaction`,
      );
  }
  for (const { text } of statements) {
    const words = wordsOf(text);
    const [first = "", second = ""] = words;
    if (/^CREATE (UNIQUE )?INDEX CONCURRENTLY ON /.test(`${words.slice(0, 5).join(" ")} `))
      throw refuse(
        "contains CREATE INDEX CONCURRENTLY without a name for the index, by which it could be found again",
      );
    if (transactionWords.includes(first) || (first === "PREPARE" && second === "TRANSACTION"))
      throw refuse(`contains ${first}: each revision already runs in a transaction`);
  }
}

/** Whether each statement can simply be run again if it was interrupted, or done but not recorded. */
export function isResumable(sql: string): boolean {
  return splitStatements(sql).every(({ text }) => {
    const words = wordsOf(text);
    return concurrentIndex(words) || ["REINDEX", "VACUUM", "ANALYZE", "CLUSTER"].includes(words[0] ?? "");
  });
}

/** The index of `CREATE | DROP INDEX CONCURRENTLY`. A new one has no schema of its own: it is in that of its table. */
export function concurrentIndex(words: readonly string[]): { name: string; isNew: boolean } | undefined {
  const at = words.indexOf("INDEX");
  if (words[at + 1] !== "CONCURRENTLY" || !/^(CREATE( UNIQUE)?|DROP)$/.test(words.slice(0, at).join(" ")))
    return undefined;
  const from = at + 2 + (words[at + 2] !== "IF" ? 0 : words[at + 3] === "NOT" ? 3 : 2);
  const { name, end } = nameAt(words, from);
  if (words[0] === "DROP") return { name, isNew: false };
  const table = nameAt(words, afterNoise(words, end + 1)).name;
  const schema = /^("(?:[^"]|"")+"\.)"/.exec(table)?.[1] ?? "";
  return { name: schema + name, isNew: true };
}
