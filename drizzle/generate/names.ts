import { quoted as quote, shownName } from "../sql_text.ts";

export { quote };

/** PostgreSQL's limit on a name, in bytes of UTF-8. */
const nameLimit = 63;

/** For a file, which is run with standard_conforming_strings: a backslash is an ordinary character. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The name in SQL, without the schema if that is public. */
export function qualified({ schema, name }: { schema?: string; name: string }): string {
  return schema && schema !== "public" ? `${quote(schema)}.${quote(name)}` : quote(name);
}

/** The name in marks, comments and messages. */
export function displayName({ schema, name }: { schema?: string; name: string }, column?: string): string {
  return shownName([...(schema && schema !== "public" ? [schema] : []), name, ...(column ? [column] : [])]);
}

export function tableKey({ schema, name }: { schema?: string; name: string }): string {
  return `${schema || "public"}.${name}`;
}

/** SQL with empty string literals. */
export function withoutStrings(sql: string): string {
  return sql.replace(/'(?:[^']|'')*'/g, "''");
}

/** Whether a SQL text may contain a name. Errs on the side of yes. */
export function mentions(sql: string | undefined, name: string): boolean {
  return sql !== undefined && wordPattern(name, "iu").test(sql);
}

/** Replaces a name in SQL, except in string literals. */
export function renameIn(sql: string, from: string, to: string): string {
  const pattern = wordPattern(from, "gu");
  return sql
    .split(/('(?:[^']|'')*')/)
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(pattern, () => to)))
    .join("");
}

/** The name as PostgreSQL stores it: its first 63 bytes, without half a character. */
export function storedName(name: string): string {
  let stored = "";
  for (const character of name) {
    if (Buffer.byteLength(stored + character) > nameLimit) break;
    stored += character;
  }
  return stored;
}

function wordPattern(name: string, flags: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_$])${RegExp.escape(name)}(?![\\p{L}\\p{N}_$])`, flags);
}

/**
 * The name that PostgreSQL gives to a key (`t_pkey`) or a sequence (`t_c_seq`): if it is too long, the longer part is
 * shortened first (makeObjectName in src/backend/commands/indexcmds.c).
 */
export function givenName(table: string, column: string, suffix: string): string {
  const size = (text: string) => Buffer.byteLength(text);
  const room = nameLimit - size(suffix) - 1 - (column ? 1 : 0);
  let [first, second] = [table, column];
  while (size(first) + size(second) > room) {
    if (size(first) > size(second)) first = [...first].slice(0, -1).join("");
    else second = [...second].slice(0, -1).join("");
  }
  return [first, ...(column ? [second] : []), suffix].join("_");
}
