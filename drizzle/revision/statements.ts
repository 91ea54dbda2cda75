import { fold, quoted, unescaped } from "../sql_text.ts";

/** One statement of a SQL text, without its terminating semicolon. */
export interface Statement {
  text: string;
  /** The offset of `text` in the whole text. */
  offset: number;
  /** The offset of its first word in the whole text, after any comments above it. */
  start: number;
}

/**
 * Splits a SQL text at its semicolons as psql does, except those in strings, quoted names, dollar quotes, comments,
 * parentheses and SQL function bodies (BEGIN ATOMIC ... END). Comments stay with the statement that follows them; text
 * that contains only comments is skipped.
 */
export function splitStatements(sql: string): Statement[] {
  const statements: Statement[] = [];
  let start = 0;
  let words: string[] = [];
  let first = 0;
  let parentheses = 0;
  let blocks = 0;
  const flush = (end: number) => {
    const raw = sql.slice(start, end);
    const text = raw.trim();
    if (words.length > 0) {
      const offset = start + raw.length - raw.trimStart().length;
      statements.push({ text, offset, start: first });
    }
    start = end + 1;
    words = [];
    parentheses = 0;
    blocks = 0;
  };
  for (const { kind, text, at } of tokens(sql)) {
    if (kind === "comment") continue;
    if (words.length === 0) first = at;
    if (kind === "word") {
      const word = text.toUpperCase();
      if (word === "ATOMIC" && words.at(-1) === "BEGIN" && definesRoutine(words)) blocks = 1;
      else if (blocks > 0 && word === "CASE") blocks += 1;
      else if (blocks > 0 && word === "END") blocks -= 1;
      words.push(word);
      continue;
    }
    if (text === "(") parentheses += 1;
    else if (text === ")") parentheses = Math.max(0, parentheses - 1);
    else if (text === ";" && parentheses === 0 && blocks === 0) {
      flush(at);
      continue;
    }
    // Punctuation also counts as the start of a statement.
    words.push(text);
  }
  flush(sql.length);
  return statements;
}

/**
 * The words of a statement, in capitals: `["CREATE", "INDEX", "CONCURRENTLY", ...]`; quoted names keep their case, and
 * those with Unicode escapes are decoded.
 */
export function wordsOf(statement: string): string[] {
  return wordsIn(statement).map(({ word }) => word);
}

/** The same, with the offset of each. */
export function wordsIn(statement: string): { word: string; at: number }[] {
  return [...tokens(statement)]
    .filter(({ kind }) => kind !== "comment")
    .map(({ kind, text, at }) => ({
      // PostgreSQL folds only these letters; others may become several, like ß.
      word: kind === "word" ? text.replace(/[a-z]+/g, (letters) => letters.toUpperCase()) : decoded(text),
      at,
    }));
}

function decoded(token: string): string {
  const [, name, sign] = /^U&("[\s\S]*")(?:\s*UESCAPE\s*'([\s\S])')?$/i.exec(token) ?? [];
  return name === undefined ? token : quoted(unescaped(fold(name), sign));
}

/** Reads the name that starts at a word, with its schema unless that is `public`, and returns the position after it. */
export function nameAt(words: readonly string[], at: number): { name: string; end: number } {
  const parts = [words[at] ?? ""];
  let end = at + 1;
  while (words[end] === ".") {
    parts.push(words[end + 1] ?? "");
    end += 2;
  }
  const name = parts.map((part) => (part.startsWith('"') ? part : `"${part.toLowerCase()}"`)).join(".");
  return { name: name.replace(/^"public"\./, ""), end };
}

/** The position after `IF EXISTS` and `ONLY`, which may precede a name. */
export function afterNoise(words: readonly string[], from: number): number {
  const at = words[from] === "IF" ? from + 2 : from;
  return words[at] === "ONLY" ? at + 1 : at;
}

/** The actions of ALTER TABLE or TYPE, given the words after the name: those between commas outside of brackets. */
export function actionsIn(words: readonly string[]): string[][] {
  const actions: string[][] = [[]];
  let depth = 0;
  for (const word of words) {
    if (word === "(" || word === "[") depth += 1;
    if (word === ")" || word === "]") depth -= 1;
    if (word === "," && depth === 0) actions.push([]);
    else actions.at(-1)!.push(word);
  }
  return actions;
}

function definesRoutine(words: readonly string[]): boolean {
  return (
    words[0] === "CREATE" && words.slice(1, 4).some((word) => word === "FUNCTION" || word === "PROCEDURE")
  );
}

/** All comments in a SQL text, ignoring text inside strings that looks like one. */
export function commentsOf(sql: string): { text: string; at: number }[] {
  return [...tokens(sql)].filter(({ kind }) => kind === "comment");
}

interface Token {
  kind: "word" | "quoted" | "comment" | "sign";
  text: string;
  at: number;
}

const lexeme = new RegExp(
  [
    String.raw`(?<space>[ \t\n\r\f\v]+)`,
    String.raw`(?<line>--[^\n\r]*)`,
    String.raw`(?<block>/\*)`,
    // An escape string ends at a quote without a backslash before it, and continues if the next line begins with a
    // quote.
    String.raw`(?<escape>[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'[ \t\f\v]*[\n\r](?:\s|--[^\n\r]*[\n\r])*'(?:[^'\\]|\\[\s\S]|'')*)*(?:'|$))`,
    // U&"d!0061ta" UESCAPE '!'
    String.raw`(?<unicode>[uU]&"(?:[^"]|"")*(?:"(?:\s*[uU][eE][sS][cC][aA][pP][eE]\s*'[^']')?|$))`,
    "(?<string>'(?:[^']|'')*(?:'|$))",
    '(?<name>"(?:[^"]|"")*(?:"|$))',
    String.raw`(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    String.raw`(?<sign>[\s\S])`,
  ].join("|"),
  "y",
);

function* tokens(sql: string): Generator<Token> {
  let at = 0;
  while (at < sql.length) {
    lexeme.lastIndex = at;
    const match = lexeme.exec(sql)!;
    const groups = match.groups!;
    let end = lexeme.lastIndex;
    let kind: Token["kind"] = "quoted";
    if (groups.space !== undefined) {
      at = end;
      continue;
    }
    if (groups.line !== undefined) kind = "comment";
    else if (groups.block !== undefined) {
      kind = "comment";
      end = endOfComment(sql, end);
    } else if (groups.dollar !== undefined) {
      const close = sql.indexOf(groups.dollar, end);
      end = close < 0 ? sql.length : close + groups.dollar.length;
    } else if (groups.word !== undefined) kind = "word";
    else if (groups.sign !== undefined) kind = "sign";
    yield { kind, text: sql.slice(at, end), at };
    at = end;
  }
}

/** PostgreSQL's comments nest. */
function endOfComment(sql: string, from: number): number {
  let depth = 1;
  const mark = /\/\*|\*\//g;
  mark.lastIndex = from;
  for (let match = mark.exec(sql); match; match = mark.exec(sql)) {
    depth += match[0] === "/*" ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return sql.length;
}
