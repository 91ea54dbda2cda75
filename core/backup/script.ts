/**
 * The SQL script that pg_restore writes for the rows of an archive: statements and COPY blocks, each block a line
 * `COPY ... FROM stdin;`, rows, and a line `\.`. A row cannot look like that last line, for COPY writes a backslash
 * twice.
 */
export interface ScriptTaker {
  statements(sql: string): Promise<void>;
  /** Must take all rows. */
  copy(statement: string, rows: AsyncIterable<Uint8Array>): Promise<void>;
}

/** pg_restore ended in the middle; it has said why. */
export class EndOfScript extends Error {}

const copyLine = /^COPY .* FROM stdin;$/;
const endOfRows = Buffer.from("\n\\.\n");
const lineFeed = 10;

export async function readScript(script: AsyncIterable<Uint8Array>, taker: ScriptTaker): Promise<void> {
  const source = new Source(script);
  let sql = "";
  for (;;) {
    const line = await source.line();
    if (line !== undefined && !copyLine.test(line)) {
      sql += `${line}\n`;
      continue;
    }
    if (hasStatement(sql)) await taker.statements(withoutPsql(sql));
    sql = "";
    if (line === undefined) return;
    await taker.copy(line, source.rows());
  }
}

/** Without the two lines for psql that guard it against a server that smuggles in commands of its own. */
export function withoutPsql(script: string): string {
  return script.replace(/^\\(un)?restrict \w+$/gm, "");
}

function hasStatement(sql: string): boolean {
  return (
    withoutPsql(sql)
      .replace(/^--.*$/gm, "")
      .trim() !== ""
  );
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
      if (!(await this.#more()))
        return this.#buffer.length > 0 ? this.#take(this.#buffer.length).toString() : undefined;
      end = this.#buffer.indexOf(lineFeed);
    }
    const line = this.#take(end).toString();
    this.#take(1);
    return line;
  }

  /** The rows of a block whose first line comes next, in pieces; its last line is taken too. */
  async *rows(): AsyncGenerator<Uint8Array> {
    // So that a block without rows ends as every other does.
    this.#buffer = Buffer.concat([endOfRows.subarray(0, 1), this.#buffer]);
    let first = true;
    for (;;) {
      const end = this.#buffer.indexOf(endOfRows);
      // What may be the beginning of the end stays.
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
