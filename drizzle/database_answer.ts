import { Unavailable } from "../platform/errors.ts";

/** Shorter than a client's timeout, so that the client gets the error and retries. */
const patienceMilliseconds = 5000;

/**
 * Awaits `work` in the database with a time limit: a frozen database, or one behind a cut cable, does not answer for
 * minutes. The work itself continues.
 *
 * @throws Unavailable after five seconds
 */
export async function databaseAnswer<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Unavailable("The database does not answer: try again in a moment")),
    patienceMilliseconds,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
