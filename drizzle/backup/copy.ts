import type { Sql } from "../client.ts";

/**
 * COPY over postgres.js. Its own promise of a COPY settles when the stream begins: what the server says afterwards (how
 * many rows; an error that comes when all is sent) it gives to a promise that is settled already, and a stream whose
 * end the server refuses never ends. So the query's two callbacks are taken over here. A test holds postgres.js to it.
 */
interface StreamingQuery {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Outcome {
  /** Rows, by the server's count. */
  count: Promise<number>;
  refused(): boolean;
}

type Runner = Pick<Sql, "unsafe">;

/** Rows that a COPY TO STDOUT sends, in whatever pieces; `count` settles when the last piece was taken. */
export interface Rows extends AsyncIterable<Uint8Array> {
  count: Promise<number>;
}

/**
 * Whoever stops before the last row has to end the connection: the server goes on sending.
 * @throws PostgresError, here or while the rows are taken
 */
export async function copyOut(sql: Runner, statement: string): Promise<Rows> {
  const query = sql.unsafe(statement);
  const outcome = watch(query as unknown as StreamingQuery);
  const stream = await query.readable();
  const rows = async function* (): AsyncGenerator<Uint8Array> {
    yield* stream;
    // Its last rows may have paused the socket, and an ended stream never asks for more: then all that comes after
    // them would wait for ever. This is what a stream does that asks for more.
    if (!outcome.refused()) stream._read(0);
  };
  return { count: outcome.count, [Symbol.asyncIterator]: rows };
}

/**
 * Sends `pieces` to a COPY FROM STDIN, no faster than the server takes them, and tells how many rows it took.
 * @throws PostgresError, and whatever `pieces` throws; the connection can be used again in either case
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
    // It may come before anybody has got the stream. Whoever takes rows is told all the same, and so is `count`.
    (stream as NodeJS.EventEmitter).on("error", () => {});
    begin(stream);
    // From now on: the result.
    query.resolve = (result) => resolve((result as { count: number | null }).count ?? 0);
  };
  query.reject = (error) => {
    refused = true;
    fail(error);
    reject(error);
  };
  return { count: promise, refused: () => refused };
}

/** How many rows of COPY's text end in a piece of it: a line break within a value is written as `\n`. */
export function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(lineFeed); at >= 0; at = piece.indexOf(lineFeed, at + 1)) lines += 1;
  return lines;
}

const lineFeed = 10;
