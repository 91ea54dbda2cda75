import { InvalidInput } from "../../platform/errors.ts";
import { wordsOf } from "../revision/statements.ts";
import { fold } from "../sql_text.ts";

/**
 * Receives the SQL script that pg_restore writes for the rows of an archive: statements and COPY blocks. A block is a
 * statement `COPY ... FROM stdin;`, rows, and a line `\.`. A row cannot look like that last line, because COPY doubles
 * backslashes.
 */
export interface ScriptTaker {
  statements(sql: string): Promise<void>;
  /** Must read all rows. */
  copy(statement: string, rows: AsyncIterable<Uint8Array>): Promise<void>;
}

/** The script is incomplete; pg_restore has reported why. */
export class EndOfScript extends Error {}

const endOfRows = Buffer.from("\n\\.\n");
const lineFeed = 10;
/** No statement among the rows is longer: a name has at most 63 bytes, a table at most 1600 columns. */
const longestStatement = 16 << 20;
/** Statements are passed on in groups of about this size. */
const groupCharacters = 1 << 16;

export async function readScript(script: AsyncIterable<Uint8Array>, taker: ScriptTaker): Promise<void> {
  const source = new Source(script);
  let group = "";
  let statement = "";
  const flush = async () => {
    if (group !== "") await taker.statements(group);
    group = "";
  };
  for (let line = await source.line(); line !== undefined; line = await source.line()) {
    if (isForPsql(line) && wordsOf(statement).length === 0) continue;
    statement += `${line}\n`;
    if (statement.length > longestStatement) throw endless();
    if (!line.trimEnd().endsWith(";")) continue;
    // A semicolon within a name or a string does not end a statement, and neither does a line break there.
    const words = wordsOf(statement);
    if (words.at(-1) !== ";") continue;
    if (words[0] === "COPY" && words.at(-3) === "FROM" && words.at(-2) === "STDIN") {
      await flush();
      await taker.copy(statement.trim(), source.rows());
    } else {
      group += statement;
      if (group.length > groupCharacters) await flush();
    }
    statement = "";
  }
  if (wordsOf(statement).length > 0) throw new EndOfScript("the script ends within a statement");
  await flush();
}

/** The table of `COPY schema.table (columns) FROM stdin;`. */
export function copiedTable(statement: string): { schema: string; name: string } {
  const [, schema, dot, name] = wordsOf(statement);
  if (dot !== ".") throw new Error("COPY of a table without a schema");
  return { schema: fold(schema), name: fold(name) };
}

/** `\restrict` and `\unrestrict` protect psql from commands injected by a malicious server. */
function isForPsql(line: string): boolean {
  return /^\\(un)?restrict \w+$/.test(line);
}

/** Removes those two lines: the first follows the opening comments, the second has the same key and comes last. */
export function withoutPsql(script: string): string {
  const [opening, key] = /^(?:(?:--.*)?\n)*\\restrict (\w+)\n/.exec(script) ?? [];
  if (opening === undefined) return script;
  const last = script.lastIndexOf(`\n\\unrestrict ${key}`);
  return script.slice(opening.length, last < 0 ? undefined : last);
}

function endless(): InvalidInput {
  return new InvalidInput("file", "The backup was not written by svc: a statement has no end");
}

class Source {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(script: AsyncIterable<Uint8Array>) {
    this.#chunks = script[Symbol.asyncIterator]();
  }

  /** Undefined at the end. */
  async line(): Promise<string | undefined> {
    let end = this.#buffer.indexOf(lineFeed);
    while (end < 0) {
      if (this.#buffer.length > longestStatement) throw endless();
      if (!(await this.#more()))
        return this.#buffer.length > 0 ? this.#take(this.#buffer.length).toString() : undefined;
      end = this.#buffer.indexOf(lineFeed);
    }
    const line = this.#take(end).toString();
    this.#take(1);
    return line;
  }

  /** The rows of the block that starts on the next line, in pieces; also reads its last line. */
  async *rows(): AsyncGenerator<Uint8Array> {
    // This makes an empty block end like any other.
    this.#buffer = Buffer.concat([endOfRows.subarray(0, 1), this.#buffer]);
    let first = true;
    for (;;) {
      const end = this.#buffer.indexOf(endOfRows);
      // Keeps bytes that may be the start of the end mark.
      const length = end >= 0 ? end + 1 : this.#buffer.length - endOfRows.length + 1;
      if (length > (first ? 1 : 0)) {
        const piece = this.#take(length);
        yield first ? piece.subarray(1) : piece;
        first = false;
      } else if (end >= 0) this.#take(length);
      if (end >= 0) {
        this.#take(endOfRows.length - 1);
        return;
      }
      if (!(await this.#more())) throw new EndOfScript("the script ends within a COPY block");
    }
  }

  #take(length: number): Buffer {
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (done) return false;
    this.#buffer = this.#buffer.length === 0 ? Buffer.from(value) : Buffer.concat([this.#buffer, value]);
    return true;
  }
}
