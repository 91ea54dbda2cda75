import { SvcError } from "../../platform/errors.ts";
import { errorCode, isPostgresError, operatorsError } from "../database_error.ts";
import type { Statement } from "./statements.ts";

/** What is known about a failed step. */
export interface Failure {
  /** `up.sql of revision ID` */
  what: string;
  /** The file's content. */
  text: string;
  /** The statement that ran; undefined if none of the file did. */
  statement?: Statement;
  /** The SQL sent before the statement, in the same message. */
  before?: string;
  /** The current state, and the command to run next. */
  next: string;
}

/**
 * Formats the error of a step for a person: file, line and reason, the beginning of the statement, and what to do next.
 * @returns the error unchanged if it comes from neither PostgreSQL nor the network; one line if the database is
 * read-only
 */
export function explainFailure(
  error: unknown,
  { what, text, statement, before = "", next }: Failure,
): unknown {
  if (error instanceof SvcError) return error;
  const known = operatorsError(error);
  if (known === error && !isPostgresError(error)) return error;
  // Not the statement's fault: this database is read-only.
  if (errorCode(error) === "25006") return known;
  const at = statement && (positionIn(statement, before, error) ?? statement.start);
  const line = at === undefined ? "" : `, line ${text.slice(0, at).split("\n").length}`;
  const lines = [
    `${what}${line}: ${reasonFor(error, known)}`,
    ...(statement
      ? [`  ${beginningOf(text.slice(statement.start, statement.offset + statement.text.length))}`]
      : []),
    next,
  ];
  const code = known instanceof SvcError ? known.code : "configuration";
  return new SvcError(code, lines.join("\n"), { cause: error });
}

/** PostgreSQL counts characters; JavaScript counts those outside the Basic Multilingual Plane twice. */
function positionIn({ text, offset }: Statement, before: string, error: unknown): number | undefined {
  const position = Number((error as { position?: string }).position) - [...before].length;
  return position > 0 ? offset + [...text].slice(0, position - 1).join("").length : undefined;
}

/** Whether a statement failed while the connection survived. */
export function isStatementError(error: unknown): error is Error & { code: string; position?: string } {
  return isPostgresError(error) && (error as { severity?: string }).severity === "ERROR";
}

function reasonFor(error: unknown, known: unknown): string {
  if (!isStatementError(error)) return known instanceof SvcError ? known.detail : (error as Error).message;
  const { message, detail, where } = error as Error & { detail?: string; where?: string };
  const context = where?.split("\n").find((line) => /^PL\/pgSQL function .+ line \d+/.test(line));
  return [
    message + (context ? ` (${context})` : ""),
    // Here the detail lists dependent objects; for other errors it may contain a row.
    ...(errorCode(error) === "2BP01" && detail ? [detail.replaceAll("\n", ", ")] : []),
    // Usually a missing schema is `public`; here the statement names it.
    ...(known instanceof SvcError && errorCode(error) !== "3F000" ? [known.detail] : []),
    ...(errorCode(error) === "25001"
      ? ["Begin the file with a line `-- svc: no-transaction`, and keep only such statements in it"]
      : []),
  ].join(". ");
}

const longest = 120;

function beginningOf(statement: string): string {
  const line = statement.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
}
