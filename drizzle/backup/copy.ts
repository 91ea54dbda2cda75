import type { Sql } from "../client.ts";

/**
 * COPY over postgres.js. Its own promise of a COPY settles when the stream begins, so whatever the server reports later
 * (the row count, or an error after all rows are sent) is lost, and a stream whose end the server rejects never ends.
 * So this module replaces the query's two callbacks. A test covers the parts of postgres.js that this relies on.
 */
interface StreamingQuery {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Outcome {
  /** The server's row count. */
  count: Promise<number>;
  refused(): boolean;
}

type Runner = Pick<Sql, "unsafe">;

/** The rows that a COPY TO STDOUT sends, in arbitrary pieces; `count` settles after the last piece is read. */
export interface Rows extends AsyncIterable<Uint8Array> {
  count: Promise<number>;
}

/**
 * Starts a COPY TO STDOUT. A caller that stops before the last row must end the connection, as the server keeps
 * sending.
 * @throws PostgresError, here or while the rows are read
 */
export async function copyOut(sql: Runner, statement: string): Promise<Rows> {
  const query = sql.unsafe(statement);
  const outcome = watch(query as unknown as StreamingQuery);
  const stream = await query.readable();
  const rows = async function* (): AsyncGenerator<Uint8Array> {
    yield* stream;
    // The last rows may have paused the socket, and an ended stream never asks for more, so everything after them would
    // wait forever. This does what a stream does to ask for more.
    if (!outcome.refused()) stream._read(0);
  };
  return { count: outcome.count, [Symbol.asyncIterator]: rows };
}

/**
 * Sends `pieces` to a COPY FROM STDIN, no faster than the server accepts them, and returns the number of rows.
 * @throws PostgresError, and whatever `pieces` throws; the connection stays usable in either case
 */
export async function copyIn(
  sql: Runner,
  statement: string,
  pieces: AsyncIterable<Uint8Array>,
): Promise<number> {
  const query = sql.unsafe(statement);
  const outcome = watch(query as unknown as StreamingQuery);
  const stream = await query.writable();
  const write = (piece: Uint8Array) =>
    new Promise<void>((settle, reject) => stream.write(piece, (error) => (error ? reject(error) : settle())));
  try {
    for await (const piece of pieces) await Promise.race([write(piece), outcome.count]);
  } catch (error) {
    if (outcome.refused()) return outcome.count;
    stream.destroy(error as Error);
    await outcome.count.catch(() => {});
    throw error;
  }
  stream.end();
  return outcome.count;
}

function watch(query: StreamingQuery): Outcome {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  promise.catch(() => {});
  let refused = false;
  const [begin, fail] = [query.resolve, query.reject];
  query.resolve = (stream) => {
    // An error may arrive before anyone listens to the stream. The reader and `count` still receive it.
    (stream as NodeJS.EventEmitter).on("error", () => {});
    begin(stream);
    // From now on, the query resolves with the result.
    query.resolve = (result) => resolve((result as { count: number | null }).count ?? 0);
  };
  query.reject = (error) => {
    refused = true;
    fail(error);
    reject(error);
  };
  return { count: promise, refused: () => refused };
}

/** The number of COPY rows that end in this piece: a line break within a value is written as `\n`. */
export function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(lineFeed); at >= 0; at = piece.indexOf(lineFeed, at + 1)) lines += 1;
  return lines;
}

const lineFeed = 10;
