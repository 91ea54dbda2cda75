import { SvcError } from "../errors.ts";
import { splitStatements, wordsOf } from "./statements.ts";

/**
 * What a revision's SQL says of itself, in comments of their own line:
 *
 *     -- svc: no-transaction                  this one statement cannot run in a transaction
 *     -- svc: irreversible REASON             there is no way back
 *     -- svc: data-loss table NAME            the rows of this table are lost
 *     -- svc: data-loss column TABLE.NAME     the values of this column are lost
 *     -- svc: data-loss position of sequence NAME   how far it has counted is lost
 *     -- svc: data-loss TEXT                  something else is lost
 */
export interface Marks {
  transactional: boolean;
  /** Why there is no way back. */
  irreversible?: string;
  losses: Loss[];
}

export type Loss =
  | { kind: "table"; table: string }
  | { kind: "column"; table: string; column: string }
  | { kind: "sequence"; sequence: string }
  | { kind: "other"; text: string };

/** @throws SvcError `configuration` for a mark that is none: a misspelt one would protect nothing */
export function readMarks(sql: string): Marks {
  const marks: Marks = { transactional: true, losses: [] };
  for (const [, text = ""] of sql.matchAll(/^[ \t]*--[ \t]*svc:[ \t]*(.*?)[ \t]*\r?$/gm)) {
    const [, word = "", rest = ""] = text.match(/^(\S+)\s*(.*)$/) ?? [];
    if (word === "no-transaction" && rest === "") marks.transactional = false;
    else if (word === "irreversible") marks.irreversible = rest || "no reason is given";
    else if (word === "data-loss") marks.losses.push(lossOf(rest));
    else throw new SvcError("configuration", `"-- svc: ${text}" is no mark of ours`);
  }
  return marks;
}

function lossOf(text: string): Loss {
  const [, kind, name = ""] = text.match(/^(table|column) (\S.*)$/) ?? [];
  if (kind === "table" && isName(name)) return { kind, table: name };
  const parts = splitName(name);
  if (kind === "column" && parts.length >= 2) {
    return { kind, table: parts.slice(0, -1).join("."), column: parts.at(-1)! };
  }
  const [, sequence = ""] = text.match(/^position of sequence (\S.*)$/) ?? [];
  if (isName(sequence)) return { kind: "sequence", sequence };
  return { kind: "other", text: text || "data" };
}

const isName = (name: string) => splitName(name).length > 0;

/** `public.incident."odd name"` in its parts, quotes kept; empty when it is no name. */
function splitName(name: string): string[] {
  const parts = name.match(/"(?:[^"]|"")+"|[^".\s]+/g) ?? [];
  return parts.join(".") === name ? parts : [];
}

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
 * @throws SvcError `configuration` when the text holds more than it may: its own BEGIN or COMMIT would take the
 * revision out of the transaction that records it; without one there is but a single statement to fail
 */
export function checkStatements(what: string, sql: string, { transactional }: Marks): void {
  const statements = splitStatements(sql);
  if (!transactional && statements.length > 1) {
    const count = `${statements.length} statements`;
    throw new SvcError(
      "configuration",
      `${what} runs without a transaction and so may hold one statement, not ${count}`,
    );
  }
  for (const { text } of statements) {
    const words = wordsOf(text);
    const [first = "", second = ""] = words;
    if (/^CREATE (UNIQUE )?INDEX CONCURRENTLY ON /.test(`${words.slice(0, 5).join(" ")} `)) {
      throw new SvcError(
        "configuration",
        `${what}: an index that is made concurrently needs a name, to be found again`,
      );
    }
    if (transactionWords.has(first) || (first === "PREPARE" && second === "TRANSACTION")) {
      throw new SvcError(
        "configuration",
        `${what} holds ${first}: each revision has a transaction of its own`,
      );
    }
  }
}
