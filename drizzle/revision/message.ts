import type { Sql } from "../connection/sql.ts";
import { losingStatements, lossGuard } from "./loss.ts";
import { type Statement, splitStatements } from "./statements.ts";

/** A revision's SQL as it is sent, so that a failure can be found in the file it came from. */
export interface Message {
  sql: string;
  statements: Statement[];
  /** The offset in the file for an offset in `sql`; undefined for what the file does not hold. */
  inFile(offset: number): number | undefined;
}

/**
 * Puts a marker after each statement, which answers with a row when the statement is done: of most errors PostgreSQL says
 * no position. With `guarded`, also a guard before each statement that may lose something.
 */
export function composeMessage(text: string, { guarded }: { guarded: boolean }): Message {
  const statements = splitStatements(text);
  const losses = new Map(
    (guarded ? losingStatements(text) : []).map(({ statement, losses: own }) => [statement.offset, own]),
  );
  const pieces: { begin: number; offset: number; length: number }[] = [];
  let sql = "";
  let copied = 0;
  const copy = (end: number) => {
    pieces.push({ begin: sql.length, offset: copied, length: end - copied });
    sql += text.slice(copied, end);
    copied = end;
  };
  for (const [at, { offset, text: own }] of statements.entries()) {
    copy(offset);
    const guard = lossGuard(losses.get(offset) ?? []);
    if (guard) sql += `${guard}\n`;
    copy(offset + own.length);
    sql += `\n;select ${at + 1} as svc_done`;
  }
  copy(text.length);
  return {
    sql,
    statements,
    inFile(offset) {
      const piece = pieces.findLast(({ begin }) => begin <= offset);
      const within = piece ? offset - piece.begin : -1;
      return piece && within < piece.length ? piece.offset + within : undefined;
    },
  };
}

/** Sends SQL that holds a message. @returns how many of its statements were done; also told when it fails */
export async function send(
  sql: Pick<Sql, "unsafe">,
  text: string,
  onDone: (count: number) => void,
): Promise<void> {
  await sql.unsafe(text).forEach((row) => {
    if (typeof row.svc_done === "number") onDone(row.svc_done);
  });
}
