/** One SQL statement, if necessary with the comments directly above it. */
export interface Step {
  sql: string;
  /** What is lost: a mark for the engine, see drizzle/revision/marks.ts. */
  loss?: string[];
  /** Points for a person to decide or check. */
  look?: string[];
}

/** Formats the statements as a file for a person to read, separated by blank lines. */
export function write(statements: readonly Step[]): string {
  return statements.map(writeOne).join("\n");
}

function writeOne({ sql, loss = [], look = [] }: Step): string {
  const lines = [
    ...look.map((text) => `-- Look here: ${oneLine(text)}`),
    // Not wrapped like prose, because a name may contain two spaces.
    ...loss.map((text) => `-- svc: data-loss ${text.replace(/[\r\n\u2028\u2029]+/g, " ")}`),
    sql.trim(),
  ];
  return `${lines.join("\n")}\n`;
}

/** Removes line breaks: in a name, one would end the comment. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
