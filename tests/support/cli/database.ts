import type { Sql } from "../../../drizzle/connection/sql.ts";
import { inOrder, readRevisions } from "../../../drizzle/revision/history.ts";
import { splitStatements } from "../../../drizzle/revision/statements.ts";
import { runHere } from "./io.ts";
import type { Finished } from "./process.ts";

/** The ids of the release's revisions, with the head last. */
export const ids = inOrder(await readRevisions()).map(({ id }) => id);
export const head = ids.at(-1)!;

/** Runs `svc database ...` on one database, in this process. */
export function on(url: string): (...args: string[]) => Promise<Finished> {
  return (...args) => runHere(["database", ...args], { SVC_DATABASE_URL: url });
}

export const ok = (stdout: string, stderr = ""): Finished => ({ code: 0, stdout, stderr });

export const failed = (message: string, stdout = ""): Finished => ({
  code: 1,
  stdout,
  stderr: `svc: ${message}\n`,
});

/** Runs the statements one by one. One message would be one transaction, in which no index can be built concurrently. */
export async function runAsPsql(sql: Sql, script: string): Promise<void> {
  for (const { text } of splitStatements(script)) await sql.unsafe(text);
}
